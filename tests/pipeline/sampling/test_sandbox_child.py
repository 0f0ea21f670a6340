"""Replies of the child: frames in batches and a summary, spans, or the error as a message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kinodex.pipeline.decoding.stream import Span
from kinodex.pipeline.errors import NotAVideo
from kinodex.pipeline.sample import ChunkSummary, sample_chunk
from kinodex.pipeline.sandbox_child import _batches, _reply
from tests.support.ffmpeg import READING, whole


def test_a_chunk_becomes_batches_and_a_summary(film: Path) -> None:
    *batches, summary = _reply(("sample", whole(film), replace(READING, batch=5)))
    assert [len(batch) for batch in batches if isinstance(batch, list)] == [5, 5, 2]
    assert isinstance(summary, ChunkSummary)
    assert summary.end_s == 12.0


def test_a_video_is_split(film: Path) -> None:
    (spans,) = _reply(("split", whole(film), replace(READING, cut_s=6.0)))
    assert isinstance(spans, tuple)
    assert all(isinstance(span, Span) for span in spans)
    assert len(spans) == 2


def test_an_error_of_the_video_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "words.mp4"
    path.write_text("only words")
    (message,) = _reply(("sample", whole(path), READING))
    assert isinstance(message, NotAVideo)
    assert "words.mp4" in str(message)


def test_frames_that_come_slowly_are_sent_in_smaller_batches(film: Path) -> None:
    def sizes(max_hold_s: float) -> list[int]:
        parts = sample_chunk(whole(film), READING)
        return [len(part) for part in _batches(parts, 16, max_hold_s) if isinstance(part, list)]

    assert sizes(max_hold_s=3600.0) == [12]
    assert sizes(max_hold_s=0.0) == [1] * 12
