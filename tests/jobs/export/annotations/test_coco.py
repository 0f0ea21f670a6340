"""Detections as COCO, opened again by pycocotools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image
from pycocotools.coco import COCO

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.annotations import export_coco
from kinodex.jobs.export.moments import Moment
from tests.support.screen_text.lines import Line, add_screen_text


def test_boxes_are_opened_by_pycocotools(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    film = library.video("film-02")
    report = export_coco(library, [Moment(film, film.start_s, film.end_s)], tmp_path / "out")
    assert (report.images, report.annotations, report.categories) == (2, 2, 1)
    coco = COCO(str(tmp_path / "out" / "annotations.json"))
    (category,) = coco.loadCats(coco.getCatIds())
    assert category["name"] == "walrus"
    rows = {row.frame_no: row for row in library.detections(film.video_id)}
    for image in coco.loadImgs(coco.getImgIds()):
        (annotation,) = coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]]))
        row = rows[image["frame_no"]]
        x0, y0, x1, y1 = row.box
        wide, high = image["width"], image["height"]
        expected = [x0 * wide, y0 * high, (x1 - x0) * wide, (y1 - y0) * high]
        assert annotation["bbox"] == pytest.approx(expected, abs=0.01)
        assert annotation["score"] == pytest.approx(row.score)
        with Image.open(tmp_path / "out" / "images" / image["file_name"]) as picture:
            assert picture.size == (wide, high)
    assert len(coco.loadRes([{**each, "score": 0.5} for each in coco.dataset["annotations"]]).getAnnIds()) == 2


def test_times_scores_and_labels_limit_them(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    film = library.video("film-02")
    whole = Moment(film, film.start_s, film.end_s)
    assert export_coco(library, [whole, whole], tmp_path / "a", min_score=0.5).annotations == 1
    assert export_coco(library, [Moment(film, 8.0, 10.0)], tmp_path / "b").annotations == 1
    with pytest.raises(UsageError, match="kinodex add detections"):
        export_coco(library, [whole], tmp_path / "c", label="cat")
    assert not (tmp_path / "c").exists()


def test_text_on_screen_is_a_box_in_every_frame_that_shows_it(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(described, tmp_path / "library")))
    film = library.video("film-02")
    whole = Moment(film, film.start_s, film.end_s)
    with pytest.raises(UsageError, match="kinodex add screen-text"):
        export_coco(library, [whole], tmp_path / "none", text=True)
    start_s = film.start_s + 2.0
    add_screen_text(library, film.video_id, [Line(start_s, start_s + 3.0, "HARBOUR", box=(0.25, 0.5, 0.75, 0.625))])
    report = export_coco(library, [whole], tmp_path / "out", text=True)
    coco = COCO(str(tmp_path / "out" / "annotations.json"))
    shown = [image["time_s"] for image in coco.loadImgs(coco.getImgIds())]
    _, times_s = library.frame_times(film.video_id)
    assert shown == [time_s for time_s in times_s if start_s <= time_s < start_s + 3.0]
    assert (report.images, report.annotations, report.categories) == (len(shown), len(shown), 1)
    annotation, image = coco.loadAnns(coco.getAnnIds())[0], coco.loadImgs(coco.getImgIds())[0]
    assert (annotation["text"], coco.loadCats(coco.getCatIds())[0]["name"]) == ("HARBOUR", "text")
    sides = (image["width"], image["height"])
    assert annotation["bbox"] == pytest.approx([0.25 * sides[0], 0.5 * sides[1], 0.5 * sides[0], 0.125 * sides[1]])
