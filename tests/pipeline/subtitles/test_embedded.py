"""Embedded text tracks give plain lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.subtitles.cues import Line
from pipeline.subtitles.embedded import embedded_lines

HELLO = [(1.0, 3.5, "Hello world!"), (5.0, 7.0, "This is a test."), (8.5, 10.0, "Goodbye!")]


def plain(lines: list[Line]) -> list[tuple[float, float, str]]:
    return [(round(line.start_s, 3), round(line.end_s, 3), line.text) for line in lines]


@pytest.mark.parametrize(
    ("name", "shift_s", "language"),
    [("mkv-srt.mkv", 0.021, "eng"), ("mkv-ass.mkv", 0.021, "eng"), ("mov-tx3g.mov", 0, "eng"),
     ("mp4-webvtt.mp4", 0, "eng")],
)  # fmt: skip
def test_embedded_tracks(media: Path, name: str, shift_s: float, language: str) -> None:
    lines = embedded_lines(media / "awkward" / f"mediabunny__test-{name}", name)
    assert plain(lines) == [(round(a + shift_s, 3), round(b + shift_s, 3), text) for a, b, text in HELLO]
    assert {(line.source, line.language) for line in lines} == {("embedded", language)}


def test_a_file_without_text_has_no_lines(media: Path) -> None:
    assert embedded_lines(media / "clips" / "moviepy__chaplin.mp4", "chaplin") == []
