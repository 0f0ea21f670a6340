"""Detections as files that pycocotools, the SDK of Label Studio and FiftyOne read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from pycocotools.coco import COCO

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.coco import export_coco
from kinodex.jobs.export.fiftyone import export_fiftyone
from kinodex.jobs.export.label_studio import export_label_studio
from kinodex.jobs.export.moments import Moment
from tests.support.libraries.moments import moments, video
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.servers.third_parties.environments import printed, python_with


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


def test_text_on_screen_is_a_box_in_every_frame_that_shows_it(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(described, tmp_path / "library")))
    film = library.video("film-02")
    whole = Moment(film, film.start_s, film.end_s)
    with pytest.raises(UsageError, match="kinodex add screen_text"):
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


SDK = "label-studio-sdk==2.1.2"
PROGRAM = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
interface = LabelInterface(open(sys.argv[1] + "/config.xml").read())
interface.validate()
problems = []
for task in json.load(open(sys.argv[1] + "/tasks.json")):
    predictions = task.pop("predictions")
    assert interface.validate_task(task)
    problems += [each for one in predictions for each in interface.validate_prediction(one, return_errors=True)]
print(json.dumps(problems))
"""


def test_ranges_and_boxes_of_a_video(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    film = library.video("film-02")
    moments = [Moment(film, 2.0, 4.0, "mine"), Moment(film, 3.0, 3.0, "a walrus & co", 0.5, "captions")]
    whole = [*moments, Moment(film, film.start_s, film.end_s, "all", None, "video")]
    report = export_label_studio(library, whole, tmp_path / "out", "/data/local-files/?d=films/", boxes=True)
    assert (report.tasks, report.moments, report.boxes) == (1, 3, 2)
    (task,) = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert task["data"]["video"] == "/data/local-files/?d=films/film-02.mp4"
    fps = task["data"]["fps"]
    first, second, _, *boxes = task["predictions"][0]["result"]
    assert first["value"] == {"ranges": [{"start": 2 * fps + 1, "end": 4 * fps}], "timelinelabels": ["mine"]}
    assert second["value"]["timelinelabels"] == ["captions"]
    assert (second["meta"], second["score"]) == ({"text": ["a walrus & co"]}, 0.5)
    rows = {row.time_s: row for row in library.detections(film.video_id)}
    for box in boxes:
        (key,) = box["value"]["sequence"]
        row = rows[key["time"]]
        assert (key["x"], key["y"]) == (round(100 * row.box[0], 4), round(100 * row.box[1], 4))
        assert not key["enabled"]
    tree = ElementTree.parse(tmp_path / "out" / "config.xml")
    names = {each.get("name") for each in tree.iter()}
    assert {"timeline", "box", "video"} <= names
    assert {each.get("value") for each in tree.iter("Label")} == {"mine", "captions", "video", "walrus"}
    export_label_studio(library, moments, tmp_path / "plain", None, boxes=False)
    (task,) = json.loads((tmp_path / "plain" / "tasks.json").read_text())
    assert task["data"]["video"] == film.uri
    assert "VideoRectangle" not in (tmp_path / "plain" / "config.xml").read_text()


@pytest.mark.third_party
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_label_studio_takes_the_tasks(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    film = library.video("film-02")
    moments = [Moment(film, 2.0, 4.0, "mine"), Moment(film, film.start_s, film.end_s, "a & b", 0.5, "captions")]
    assert export_label_studio(library, moments, tmp_path / "out", None, boxes=True).boxes == 2
    assert printed(python_with(SDK), PROGRAM, tmp_path / "out") == []
    tasks = tmp_path / "out" / "tasks.json"
    tasks.write_text(tasks.read_text().replace('"from_name": "box"', '"from_name": "nothing"'))
    assert printed(python_with(SDK), PROGRAM, tmp_path / "out") != [], "the check must see a wrong name"


FIFTYONE = "fiftyone==1.22.1"
IMPORT_RANGES = """
import json, sys
from fiftyone.utils.data.importers import FiftyOneTemporalDetectionDatasetImporter as Importer
found = {}
with Importer(dataset_dir=sys.argv[1], data_path="data.json") as importer:
    for path, _, label, _ in importer:
        found[path] = [[each.label, *each.support] for each in label.detections]
print(json.dumps(found))
"""


@pytest.mark.third_party
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fiftyone_reads_the_ranges(tmp_path: Path) -> None:
    film, other = video("one"), video("two", fps=10.0)
    ranges = [*moments((1.0, 2.0, "a"), (3.0, 4.0, ""), of=film), *moments((0.0, 0.5, "b"), of=other)]
    export_fiftyone(ranges, tmp_path / "out")
    # Reading needs no database: this one is not there.
    nowhere = {"FIFTYONE_DATABASE_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"}
    found = printed(python_with(FIFTYONE), IMPORT_RANGES, tmp_path / "out", nowhere)
    assert found == {film.uri: [["a", 26, 50], ["range", 76, 100]], other.uri: [["b", 1, 5]]}
