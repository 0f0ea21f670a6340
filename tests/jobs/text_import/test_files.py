"""Files of a source: folders and zip archives, some of them bad."""

from __future__ import annotations

import json
import zipfile

import pytest

from kinodex.jobs.add.text_files import ReadFailure
from kinodex.jobs.errors import UsageError
from tests.support.libraries.text_files import captions, spans, transcripts, written


def test_a_bad_file_does_not_stop_the_others(tmp_path):
    written(tmp_path / "a.json", {"0": "fine"})
    written(tmp_path / "b.json", '{"0": "cut o')
    written(tmp_path / "c.json", ["what", "is", "this"])
    written(tmp_path / "d.json", {})
    good, *bad = captions(tmp_path)
    assert spans(good) == [(0.0, 1.0, "fine")]
    told = [each.message for each in bad if isinstance(each, ReadFailure)]
    assert [each.where for each in bad if isinstance(each, ReadFailure)] == ["b.json", "c.json", "d.json"]
    assert told[0].startswith("b.json: is not JSON (Unterminated string")
    written(tmp_path / "deep" / "f.json", "[" * 200_000)
    (deep,) = captions(tmp_path / "deep")
    assert isinstance(deep, ReadFailure)
    assert deep.message.startswith("f.json: is not JSON (maximum recursion depth")
    assert all("got JSON of another form than captions; forms: " in each for each in told[1:])
    written(tmp_path / "e.srt", "nothing like it")
    *_, empty = transcripts(tmp_path)
    assert isinstance(empty, ReadFailure)
    assert empty.where == "e.srt"


def test_a_damaged_member_of_a_zip_does_not_stop_the_others(tmp_path):
    source = tmp_path / "caps.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a.json", json.dumps({"0": "the first"}))
        archive.writestr("b.json", json.dumps({"0": "the second"}))
    source.write_bytes(source.read_bytes().replace(b"the first", b"the worst"))
    bad, good = captions(source)
    assert isinstance(bad, ReadFailure)
    assert bad.message.startswith("a.json: cannot be read (Bad CRC-32")
    assert spans(good) == [(0.0, 1.0, "the second")]


def test_a_source_without_text_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"which does not exist; give a file, a folder or a zip"):
        captions(tmp_path / "absent")
    with pytest.raises(UsageError, match=r"which holds no text; give .json, .jsonl files, or a zip of them"):
        captions(tmp_path)
    with pytest.raises(UsageError, match=r"which holds no text"):
        transcripts(written(tmp_path / "film.mp4", "no"))
