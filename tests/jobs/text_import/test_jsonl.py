"""JSON lines in kinodex's own form, in any order, some of them wrong."""

from __future__ import annotations

import json

from kinodex.jobs.add.text_files import ReadFailure, TextLine, VideoText
from tests.support.libraries.text_files import captions, spans, transcripts, written


def test_our_own_rows_in_any_order(tmp_path):
    rows = [
        {"video": "b", "start_s": 4, "end_s": 6.5, "text": "later"},
        {"video": 17, "start_s": 0, "end_s": 1, "text": "other", "confidence": 0.25},
        {"video": "b", "start_s": 0, "end_s": 4, "text": "sooner", "speaker": "Ann", "language": "en"},
    ]
    source = written(tmp_path / "own.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    first, second = captions(source)
    assert first == VideoText("b", (TextLine(0, 4, "sooner", None, "Ann", "en"), TextLine(4, 6.5, "later")))
    assert second == VideoText("17", (TextLine(0, 1, "other", 0.25),))
    assert transcripts(source) == [first, second]


def test_bad_rows_are_told_by_number_and_the_others_read(tmp_path):
    rows = [
        '{"video": "a", "start_s": 0, "end_s": 1, "text": "fine"}',
        '{"video": "a", "start_s": 3, "end_s": 2, "text": "backwards"}',
        '{"video": "a", "start_s": -1, "end_s": 2, "text": "too soon"}',
        '{"video": "a", "end_s": 2, "text": "no start"}',
        "no JSON",
    ]
    good, bad = captions(written(tmp_path / "own.jsonl", "\n".join(rows)))
    assert spans(good) == [(0.0, 1.0, "fine")]
    assert isinstance(bad, ReadFailure)
    assert bad.name is None
    assert "own.jsonl: 4 left out: row 2: Value error, ends at 2.0 s, not after its start at 3.0 s; " in bad.message
    assert "row 3: start_s: Input should be greater than or equal to 0; row 4: start_s: Field required" in bad.message
    assert "and 1 more" in bad.message


def test_a_line_later_than_any_video_is_left_out(tmp_path):
    """A video without frames has a window for every ten seconds up to its last line."""
    rows = [{"video": "a", "start_s": 0, "end_s": end, "text": "x"} for end in (4, 1e12)]
    (read,) = captions(written(tmp_path / "own.jsonl", "\n".join(map(json.dumps, rows)) + "\n"))
    assert spans(read) == [(0.0, 4.0, "x")]
    assert isinstance(read, VideoText) and read.problem == "own.jsonl: 1 left out: 0 s to 1e+12 s, later than any video"
