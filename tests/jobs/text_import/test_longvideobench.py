"""The subtitles of LongVideoBench: two schemas, and videos that are cut from longer ones."""

from __future__ import annotations

import pytest

from kinodex.jobs.add.text_files import ReadFailure, TextLine, VideoText
from kinodex.jobs.errors import UsageError
from tests.support.libraries.text_files import names, spans, transcripts, written


def test_both_schemas_of_longvideobench(tmp_path):
    clocks = [
        {"start": "00:00:01.500", "end": "00:00:03.000", "line": "one"},
        {"start": "01:00:04.250", "end": "01:00:05.000", "line": "two"},
    ]
    stamps = [
        {"timestamp": [4.5, None], "text": "second"},
        {"timestamp": [1.5, None], "text": "first"},
        {"timestamp": [7.0, 8.0], "text": ""},
        {"timestamp": "soon", "text": "never"},
    ]
    written(tmp_path / "86CxyhFV9MI_en.json", clocks)
    written(tmp_path / "x.json", stamps)
    first, second = transcripts(tmp_path)
    assert names([first, second]) == ["86CxyhFV9MI", "x"]
    assert spans(first) == [(1.5, 3.0, "one"), (3604.25, 3605.0, "two")]
    assert spans(second) == [(1.5, 4.5, "first"), (4.5, 9.5, "second")]
    assert isinstance(second, VideoText)
    assert second.problem is not None
    assert second.problem.startswith("x.json: 2 left out: row 3: got {'timestamp': [7.0, 8.0], 'text': ''}")


def test_a_video_of_longvideobench_that_is_cut_from_a_longer_one(tmp_path):
    lines = [{"timestamp": [second, second + 2.0], "text": f"at {second}"} for second in (0.0, 99.0, 105.0, 112.0)]
    source = written(tmp_path / "subtitles" / "file_en.json", lines).parent
    annotation = {"subtitle_path": "file_en.json", "video_id": "v", "starting_timestamp_for_subtitles": 100}
    cuts = written(tmp_path / "lvb_val.json", [annotation | {"duration": 12.5, "question": "q", "level": "L1"}])
    (read,) = transcripts(source, cuts=cuts)
    assert read == VideoText(
        "v", (TextLine(0.0, 1.0, "at 99.0"), TextLine(5.0, 7.0, "at 105.0"), TextLine(12.0, 12.5, "at 112.0")), 12.5
    )
    with pytest.raises(UsageError, match=r"got --cuts .*file_en.json: .* give LongVideoBench's lvb_val.json"):
        transcripts(source, cuts=source / "file_en.json")


def test_each_video_that_is_cut_from_one_has_its_lines_and_a_file_of_no_cut_is_a_failure(tmp_path):
    lines = [{"timestamp": [second, second + 2.0], "text": f"at {second}"} for second in (10.0, 110.0)]
    source = written(tmp_path / "subtitles" / "file_en.json", lines).parent
    written(source / "other_en.json", lines)
    rows = [("v1", 0), ("v1", 0), ("v2", 100)]
    annotation = {"subtitle_path": "file_en.json", "duration": 50}
    annotations = [annotation | {"video_id": name, "starting_timestamp_for_subtitles": at} for name, at in rows]
    first, second, unknown = transcripts(source, cuts=written(tmp_path / "lvb_val.json", annotations))
    assert (names([first, second]), spans(first), spans(second)) == (
        ["v1", "v2"],
        [(10.0, 12.0, "at 10.0")],
        [(10.0, 12.0, "at 110.0")],
    )
    assert isinstance(unknown, ReadFailure) and unknown.message.startswith("other_en.json: --cuts does not say")


@pytest.mark.parametrize("time", ["9" * 5000 + ":00:00", 10**4000, 1e308, "1e9", -1, "9" * 5000], ids=range(6))
def test_a_time_that_is_none_is_a_line_left_out(tmp_path, time):
    rows = [{"timestamp": [1.0, 2.0], "text": "one"}, {"timestamp": [time, 3.0], "text": "two"}]
    (read,) = transcripts(written(tmp_path / "x.json", rows))
    assert spans(read) == [(1.0, 2.0, "one")]
    assert isinstance(read, VideoText) and "x.json: 1 left out" in str(read.problem)
