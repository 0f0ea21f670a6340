"""All that later stages add to the made-up film of hours: text on screen, captions, scenes and chapters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from index.library import Library
from index.rows import SceneRow, SegmentRow
from jobs.bench.synthetic_library import MODEL, MadeCaption, words

SHOTS_A_SCENE, SCENES_A_CHAPTER = 6, 7
SHOWN_EVERY_S, SHOWN_S = 5.0, 4.0


class _Shown(NamedTuple):
    start_s: float
    end_s: float
    text: str
    confidence: float = 0.9
    box: tuple[float, float, float, float] = (0.1, 0.8, 0.6, 0.9)
    frames: int = 4
    language: str | None = None


def annotate(library: Library, video_id: str) -> None:
    """Add the stages "text", "captions" and "summaries" to a complete video of segments alone."""
    shots = library.segments(video_id)
    end_s = library.video(video_id).end_s
    shown = [
        _Shown(at * SHOWN_EVERY_S, at * SHOWN_EVERY_S + SHOWN_S, f"{text} {text}".upper())
        for at, text in enumerate(words(int(end_s / SHOWN_EVERY_S), seed=11))
    ]
    captions = [
        MadeCaption(shot.segment_no, shot.start_s, shot.end_s, f"a shot of {text} beside {text}", None)
        for shot, text in zip(shots, words(len(shots), seed=12), strict=True)
    ]
    library.additions.discard_leftovers("text", MODEL)
    library.screen_text.add({video_id: shown}, MODEL)
    library.additions.complete("text", MODEL, {video_id: len(shown)}, {})
    library.additions.add_captions({video_id: captions}, MODEL)
    library.additions.complete("captions", MODEL, {video_id: len(captions)}, {})
    parts = [*_parts("scene", shots, SHOTS_A_SCENE), *_parts("chapter", shots, SHOTS_A_SCENE * SCENES_A_CHAPTER)]
    library.additions.discard_leftovers("summaries", MODEL)
    library.scenes.add({video_id: parts})
    library.additions.complete("summaries", MODEL, {video_id: len(parts)}, {})


def _parts(level: Literal["scene", "chapter"], shots: list[SegmentRow], size: int) -> Iterator[SceneRow]:
    """Each `size` shots as one part, with a title and a summary."""
    for number, first in enumerate(range(0, len(shots), size)):
        own = shots[first : first + size]
        title, more = words(2, seed=100 * size + number)
        summary = f"In this {level} there are {title} and {more}, and then {more} and {title} again."
        span_s = own[0].start_s, own[-1].end_s
        yield SceneRow(own[0].video_id, level, number, *span_s, first, len(own), title.capitalize(), summary, MODEL)
