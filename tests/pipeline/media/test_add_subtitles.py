"""Subtitles in a clip: read back as the lines of a video, in both containers, and the pictures stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.pipeline.media.clips import add_subtitles, copy_clip, copy_suffix
from kinodex.pipeline.subtitles import Cue, embedded_lines
from tests.pipeline.media.test_encode_clip import film, shown

__all__ = ["film"]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_the_lines_come_back(film: Path, tmp_path: Path, suffix: str) -> None:
    clip = copy_clip(film, "film", tmp_path / f"clip{suffix}", 0.0, 6.0).path
    cues = [Cue(0.5, 1.5, "Ein <b>Gruß</b> & {more}"), Cue(3.0, 5.9, "second\nline")]
    add_subtitles(clip, tmp_path / f"out{suffix}", cues, "de")
    lines = embedded_lines(tmp_path / f"out{suffix}", "clip")
    assert [(line.start_s, line.end_s) for line in lines] == [(0.5, 1.5), (3.0, 5.9)]
    assert "Gruß" in lines[0].text and "& {more}" in lines[0].text
    assert shown(tmp_path / f"out{suffix}") == shown(clip)


def test_lines_that_overlap_are_shown_together(film: Path, tmp_path: Path) -> None:
    clip = copy_clip(film, "film", tmp_path / "clip.mp4", 0.0, 6.0).path
    cues = [Cue(0.5, 2.0, "one"), Cue(1.0, 3.0, "two"), Cue(4.0, 4.0, "never"), Cue(5.0, 5.5, " ")]
    add_subtitles(clip, tmp_path / "out.mp4", cues)
    lines = [line for line in embedded_lines(tmp_path / "out.mp4", "clip") if line.text]
    assert [(line.start_s, line.end_s, line.text.split()) for line in lines] == [
        (0.5, 1.0, ["one"]),
        (1.0, 2.0, ["one", "two"]),
        (2.0, 3.0, ["two"]),
    ]


def test_a_copied_clip_keeps_a_container_that_players_know(film: Path) -> None:
    assert copy_suffix(film, "film") == ".mp4"
