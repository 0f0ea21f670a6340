"""Caption files: a list a video, a file of seconds a video."""

from __future__ import annotations

import json
import zipfile

from kinodex.jobs.add.text_files import ReadFailure, TextLine, VideoText
from tests.support.libraries.text_files import captions, names, spans, written


def test_a_list_of_captions_a_video(tmp_path):
    source = written(tmp_path / "lavila.json", {"q-1": ["#C C picks\n a bowl ", "#C C drops it"], "q-2": ["#O smiles"]})
    first, second = captions(source, 2.0)
    assert first == VideoText("q-1", (TextLine(0.0, 2.0, "#C C picks a bowl"), TextLine(2.0, 4.0, "#C C drops it")))
    assert names([first, second]) == ["q-1", "q-2"]


def test_captions_that_are_none_are_left_out_and_told(tmp_path):
    source = written(tmp_path / "lavila.json", {"q-1": ["a", None, " ", "d", 5], "q-2": [], "q-3": "oops"})
    good, empty, wrong = captions(source)
    assert spans(good) == [(0.0, 1.0, "a"), (3.0, 4.0, "d")]
    assert isinstance(good, VideoText)
    assert good.problem == (
        "lavila.json: 3 left out: q-1 at 1 s: got None, which is no caption; q-1 at 2 s: got ' ', which is no caption; "
        "q-1 at 4 s: got 5, which is no caption"
    )
    assert isinstance(empty, ReadFailure)
    assert (empty.name, empty.error_class) == ("q-2", "EmptyText")
    assert isinstance(wrong, ReadFailure)
    assert wrong.message == "lavila.json: got str for video q-3; give a list of captions"


def test_a_file_of_seconds_a_video_in_a_zip_and_in_a_folder(tmp_path):
    source = tmp_path / "caps.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("caps/", "")
        archive.writestr("caps/4010069381_cap.json", json.dumps({"10": "third", "0": "first", "1": "second"}))
        archive.writestr("caps/2435100235_cap.json", json.dumps({"0": "a man"}))
        archive.writestr("__MACOSX/caps/._2435100235_cap.json", "binary")
        archive.writestr("caps/readme.txt", "not mine")
    zipped = captions(source)
    assert names(zipped) == ["2435100235", "4010069381"]
    assert spans(zipped[1]) == [(0.0, 1.0, "first"), (1.0, 2.0, "second"), (10.0, 11.0, "third")]
    with zipfile.ZipFile(source) as archive:
        archive.extractall(tmp_path / "folder")
    assert captions(tmp_path / "folder") == zipped


def test_two_lists_of_one_video_are_refused(tmp_path):
    (bad,) = captions(written(tmp_path / "all.json", '{"v": ["one"], "w": ["x"], "v": ["two"]}'))
    assert isinstance(bad, ReadFailure) and "'v' stands twice in an object" in bad.message
