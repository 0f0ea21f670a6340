"""Text on screen for libraries of tests."""

from __future__ import annotations

from typing import NamedTuple

from kinodex.index.library import Library

CORNER = (0.1, 0.8, 0.5, 0.9)


class Line(NamedTuple):
    """A line of text on screen, as `kinodex.index.annotations` takes it."""

    start_s: float
    end_s: float
    text: str
    confidence: float = 0.875
    box: tuple[float, float, float, float] = CORNER
    frames: int = 1
    language: str | None = None


def add_screen_text(library: Library, video_id: str, lines: list[Line], model: str = "reader") -> None:
    """Add the stage "screen_text" to one video, complete."""
    library.additions.discard_leftovers("screen_text", model)
    library.lines.add("screen_text", {video_id: lines}, model)
    assert library.additions.complete("screen_text", model, {video_id: len(lines)}, {}) == ()
