"""Requests to look at moments: frames and lines of several, with the number of each among all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.requests.judge_moments import FoundMoment, JudgeMoments
from kinodex.index.library import LibraryReader
from kinodex.jobs.library import batched, notes_between, shown_between
from kinodex.jobs.verification.spans import Span

FRAMES_A_MOMENT = 3
MOMENTS_A_REQUEST = 8
"""Of the default three frames each, as many pictures as servers of open models usually take at once."""
LINES_A_MOMENT = 12


def requests_for(library: LibraryReader, text: str, spans: Sequence[Span], places: Sequence[int]) -> list[JudgeMoments]:
    """Make the requests that show a model the moments at these places of a list; a moment's number is its place + 1."""
    return [_request(library, text, [(at, spans[at]) for at in some]) for some in batched(places, MOMENTS_A_REQUEST)]


def _request(library: LibraryReader, text: str, numbered: Sequence[tuple[int, Span]]) -> JudgeMoments:
    frames: dict[tuple[str, int], ShownFrame] = {}
    notes: dict[Note, None] = {}
    moments = []
    for at, span in numbered:
        labels = []
        for shown in _frames(library, span):
            known = frames.setdefault((shown.video_id, shown.frame_no), replace(shown, label=len(frames) + 1))
            labels.append(known.label)
        notes |= dict.fromkeys(lines_in(library, span, captions=not labels))
        moments.append(FoundMoment(at + 1, span.video_id, span.start_s, span.end_s, tuple(labels)))
    return JudgeMoments(
        sought=one_line(text), moments=tuple(moments), frames=tuple(frames.values()), notes=tuple(notes)
    )


def _frames(library: LibraryReader, span: Span) -> list[ShownFrame]:
    video = library.video(span.video_id)
    if not video.frames:
        return []
    (shown,) = shown_between(library, video, [(span.start_s, span.end_s)], FRAMES_A_MOMENT)
    return list(shown)


def lines_in(library: LibraryReader, span: Span, *, captions: bool = True) -> list[Note]:
    """Return the first lines of a moment, of each kind in turn: see `notes_between`."""
    return notes_between(library, span.video_id, span.start_s, span.end_s, captions=captions)[:LINES_A_MOMENT]


def one_line(text: str) -> str:
    return " ".join(text.split())
