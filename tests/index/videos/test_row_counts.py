"""Rows are counted by video, twice written ones once more, without those that an optional stage added."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.index.videos.writer import count_rows, counts_of, expected_rows, is_complete, rows_by_video
from tests.support.libraries.random_library import made, spoken, write


def test_doubled_rows_are_told_from_distinct_ones(library: Library) -> None:
    first, second = made("aaaa", 4, seed=1), made("bbbb", 3, seed=2)
    for video in (first, second, second):
        library.writer.add_frames({video.video_id: video.frame_rows()})
    counts = count_rows(library.tables, "frames")
    assert counts.rows == {"aaaa": 4, "bbbb": 6}
    assert counts.distinct == {"aaaa": 4, "bbbb": 3}
    assert rows_by_video(library.tables, "frames") == {"aaaa": 4, "bbbb": 6}
    held = counts_of(library.tables, library.vectors_table, ["aaaa", "bbbb"])
    assert held.keys() == expected_rows(library.vectors_table).keys()
    assert is_complete(first.video_row(), held, library.vectors_table)
    assert not is_complete(second.video_row(), held, library.vectors_table)


def test_speech_that_a_model_added_is_not_counted(library: Library) -> None:
    write(library, made("aaaa", 2, seed=1, lines=((0.0, 1.0, "hello"),)))
    library.additions.add_speech({"aaaa": [spoken(0, "heard")]}, "whisper")
    library.additions.add_speech({"aaaa": [spoken(0, "from a file")]}, "someone", "imported")
    assert count_rows(library.tables, "transcript").rows == {"aaaa": 1}
    assert rows_by_video(library.tables, "transcript") == {"aaaa": 1}
