"""Tasks of Label Studio: regions in frames and percent, by the names of the interface beside them; read by its SDK."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kinodex.index.library import Library
from kinodex.jobs.export.annotations import export_label_studio
from kinodex.jobs.export.moments import Moment, MomentChoice, choose_moments
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.servers.third_parties.environments import printed, python_with

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
    moments = [Moment(film, 2.0, 4.0, "mine"), Moment(film, 3.0, 3.0, "a walrus & co", 0.5, "caption")]
    whole = [*moments, Moment(film, film.start_s, film.end_s, "all", None, "video")]
    report = export_label_studio(library, whole, tmp_path / "out", "/data/local-files/?d=films/", boxes=True)
    assert (report.tasks, report.moments, report.boxes) == (1, 3, 2)
    (task,) = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert task["data"]["video"] == "/data/local-files/?d=films/film-02.mp4"
    fps = task["data"]["fps"]
    first, second, _, *boxes = task["predictions"][0]["result"]
    assert first["value"] == {"ranges": [{"start": 2 * fps + 1, "end": 4 * fps}], "timelinelabels": ["mine"]}
    assert second["value"]["timelinelabels"] == ["caption"]
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
    assert {each.get("value") for each in tree.iter("Label")} == {"mine", "caption", "video", "walrus"}


def test_text_on_screen_is_a_box_from_its_first_frame_to_its_end(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(described, tmp_path / "library")))
    film = library.video("film-01")
    add_screen_text(library, film.video_id, [Line(2.0, 5.0, "HARBOUR", box=(0.25, 0.5, 0.75, 0.625))])
    moments = choose_moments(library, MomentChoice(rows="text"), None)
    assert [(each.start_s, each.end_s, each.label, each.score) for each in moments] == [(2.0, 5.0, "HARBOUR", 0.875)]
    report = export_label_studio(library, moments, tmp_path / "out", None, boxes=True)
    assert (report.moments, report.boxes) == (1, 1)
    (task,) = json.loads((tmp_path / "out" / "tasks.json").read_text())
    line, box = task["predictions"][0]["result"]
    assert (line["value"]["timelinelabels"], line["meta"]) == (["text"], {"text": ["HARBOUR"]})
    assert (box["value"]["labels"], box["meta"], box["score"]) == (["text"], {"text": ["HARBOUR"]}, 0.875)
    keys = [(key["time"], key["enabled"], key["x"], key["width"]) for key in box["value"]["sequence"]]
    assert keys == [(2.0, True, 25.0, 50.0), (5.0, False, 25.0, 50.0)]


def test_a_task_without_boxes_names_the_file(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    film = opened.video("film-01")
    export_label_studio(opened, [Moment(film, 2.0, 4.0, "mine")], tmp_path / "out", None, boxes=False)
    (task,) = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert task["data"]["video"] == film.uri
    assert "VideoRectangle" not in (tmp_path / "out" / "config.xml").read_text()


@pytest.mark.third_party
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_label_studio_takes_the_tasks(described: Path, tmp_path: Path) -> None:
    library = Library.open(str(described))
    film = library.video("film-02")
    moments = [Moment(film, 2.0, 4.0, "mine"), Moment(film, film.start_s, film.end_s, "a & b", 0.5, "caption")]
    assert export_label_studio(library, moments, tmp_path / "out", None, boxes=True).boxes == 2
    assert printed(python_with(SDK), PROGRAM, tmp_path / "out") == []
    tasks = tmp_path / "out" / "tasks.json"
    tasks.write_text(tasks.read_text().replace('"from_name": "box"', '"from_name": "nothing"'))
    assert printed(python_with(SDK), PROGRAM, tmp_path / "out") != [], "the check must see a wrong name"
