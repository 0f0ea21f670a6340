"""Moments of made-up videos, for the formats that need no library."""

from __future__ import annotations

from dataclasses import replace

from kinodex.index.rows import VideoRow
from kinodex.jobs.export.moments import Moment
from tests.support.libraries.random_library import made


def video(title: str = "Küste & Möwen", fps: float | None = 25.0, zero_s: float = 0.0, uri: str = "") -> VideoRow:
    """A video of two minutes, with times that a player shows; its id is of its title."""
    row = made(f"id-{title}", 120, 1).video_row(title)
    return replace(row, fps=fps, zero_s=zero_s, uri=uri or f"/films/{title}.mp4")


def moments(*ranges: tuple[float, float, str], of: VideoRow | None = None) -> list[Moment]:
    """Moments of one video."""
    row = of or video()
    return [Moment(row, start_s, end_s, label) for start_s, end_s, label in ranges]
