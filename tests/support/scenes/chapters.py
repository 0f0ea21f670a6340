"""Scenes and chapters of a drawn film, as `kinodex add chapters` leaves them."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow
from kinodex.jobs.add.film_parts import Level

CHAPTERS = ("The harbour", "")


def add_chapters(library: Library, video_id: str, end_s: float, model: str = "writer") -> list[ChapterRow]:
    """Two chapters, of two scenes and of one; the second has no title."""
    half = end_s / 2
    spans: list[tuple[Level, int, float, float]] = [
        ("chapter", 0, 0.0, half),
        ("scene", 0, 0.0, half / 2),
        ("scene", 1, half / 2, half),
    ]
    spans += [("chapter", 1, half, end_s), ("scene", 2, half, end_s)]
    rows = [
        ChapterRow(video_id, level, number, start_s, to_s, number, 1, *_texts(level, number), model)
        for level, number, start_s, to_s in spans
    ]
    library.additions.discard_leftovers("chapters", model)
    library.chapters.add({video_id: rows})
    library.additions.complete("chapters", model, {video_id: len(rows)}, {})
    return rows


def _texts(level: Level, number: int) -> tuple[str, str]:
    if level == "chapter":
        return CHAPTERS[number], "Boats leave & return." if CHAPTERS[number] else ""
    return f"Scene of boats {number}", "A boat is seen."
