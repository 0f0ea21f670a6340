"""Moments that a search found, each with the hits that it was found by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.annotations.sentences import Meaning
from index.embedding.space import Fingerprint
from index.errors import QueryError, TimeOutside
from index.library import Library
from index.rows import Hit, Scope
from index.search.fusion import fuse, is_same_moment, suppress_neighbours
from jobs.viewer.search.request import SearchRequest

EmbedText = Callable[[str], NDArray[np.float32]]
MeaningOf = Callable[[str], Meaning | None]
MIN_GAP_S = 2.0
"""Between two moments of one video; of frames like one, also from that one."""

PARTS = {"transcript": "line", "text": "shown", "caption": "caption"}
"""Of a hit among words, the part of a moment that it is."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A hit and, where a search found it, the frame, the line said or shown, the caption or the detection."""

    hit: Hit
    frame: Hit | None = None
    line: Hit | None = None
    caption: Hit | None = None
    shown: Hit | None = None
    detection: Hit | None = None


def needs_vector(library: Library, request: SearchRequest, space: Fingerprint) -> bool:
    """True if `find_moments` embeds the text of a request."""
    if request.like is not None or not request.text.strip():
        return False
    in_own = space.digest == library.fingerprint.digest
    return request.kind in ("together", "frames") or (request.kind == "captions" and in_own)


def find_moments(
    library: Library, request: SearchRequest, embed: EmbedText, space: Fingerprint, meaning_of: MeaningOf | None = None
) -> list[Moment]:
    """Find the best moments for a text, best first; `embed` embeds it in `space`, one of the library's.

    `meaning_of` embeds it by the library's sentence model; None: as `library.sentences` does, each time. Raises
    QueryError for an empty text or an impossible scope, and UnknownVideo. Transcript, text on screen and detections are
    searched without embedding anything.
    """
    text, k, scope = request.text, request.most, scope_of(library, request)
    if not text.strip():
        raise QueryError("the search is empty; give some words to look for")
    match request.kind:
        case "frames":
            hits = library.search.frames(embed(text), scope, k, MIN_GAP_S, space.digest)
            return [Moment(hit, frame=hit) for hit in hits]
        case "words":
            meaning = (meaning_of or library.sentences.meaning)(text)
            hits = library.search.words(text, scope, k, meaning=meaning)
            return [Moment(hit, **{PARTS[hit.source]: hit}) for hit in hits]
        case "transcript":
            return [Moment(hit, line=hit) for hit in library.search.transcript(text, scope, k)]
        case "text":
            return [Moment(hit, shown=hit) for hit in library.search.screen_text(text, scope, k)]
        case "captions":
            in_own = space.digest == library.fingerprint.digest  # the space that captions have vectors in
            captions = library.search.captions(text, embed(text) if in_own else None, scope, k)
            return [Moment(hit, caption=hit) for hit in captions]
        case "chapters":
            return [Moment(hit, caption=hit) for hit in library.search.chapters(text, scope, k)]
        case "detections":
            return [Moment(hit, detection=hit) for hit in library.search.detections(text, 0.0, scope, k, MIN_GAP_S)]
    meaning = (meaning_of or library.sentences.meaning)(text)
    found = library.search.by_each(text, embed(text), scope, k, MIN_GAP_S, space.digest, meaning)
    return [_moment(hit, *found) for hit in suppress_neighbours(fuse(*found, query=text), MIN_GAP_S)[:k]]


def moments_like(
    library: Library, vector: NDArray[np.floating], request: SearchRequest, space: Fingerprint
) -> list[Moment]:
    """Find the frames nearest to a vector `[dim]` of `space`, a picture's or a stored frame's (`request.like`).

    The frame itself and those within 2 s of it are left out.
    """
    scope, k = scope_of(library, request), request.most
    if request.like is None:
        hits = library.search.frames(vector, scope, k, MIN_GAP_S, space.digest)
        return [Moment(hit, frame=hit) for hit in hits]
    own = library.frames(request.like[0], [request.like[1]])[0]
    # Of its own neighbours no more than three are among the hits, which are 2 s apart themselves.
    hits = library.search.frames(vector, scope, k + 3, MIN_GAP_S, space.digest)
    others = [h for h in hits if h.video_id != own.video_id or abs(h.time_s - own.time_s) >= MIN_GAP_S]
    return [Moment(hit, frame=hit) for hit in others[:k]]


def stored_vector(library: Library, video_id: str, frame_no: int, space: Fingerprint) -> NDArray[np.float16]:
    """Read the vector `[dim]` of one stored frame; raises UnknownVideo, or TimeOutside where there is no such frame."""
    stored = library.vectors(video_id, space.digest)
    at = np.flatnonzero(stored.frame_no == frame_no)
    if not len(at):
        raise TimeOutside(f"got frame {frame_no} of {library.video(video_id).title}, which has no such frame")
    vector: NDArray[np.float16] = stored.vectors[at[0]]
    return vector


def scope_of(library: Library, request: SearchRequest) -> Scope:
    """Limits of a search; raises UnknownVideo."""
    ids = None if request.video_id is None else (library.video(request.video_id).video_id,)
    return Scope(ids, request.start_s, request.end_s)


def _moment(
    hit: Hit, frames: Sequence[Hit], lines: Sequence[Hit], captions: Sequence[Hit], shown: Sequence[Hit]
) -> Moment:
    """Name the hits that were fused to one: of each search the best one near it."""
    several = hit.source == "both"
    return Moment(
        hit,
        _near(hit, (each for each in frames if hit.frame_no == each.frame_no)),
        _near(hit, lines) if several or hit.source == "transcript" else None,
        _near(hit, captions) if several or hit.source == "caption" else None,
        _near(hit, shown) if several or hit.source == "text" else None,
    )


def _near(moment: Hit, hits: Iterable[Hit]) -> Hit | None:
    """Find the hit that was joined to a moment: the best of those whose time it lies in, or else of those nearby."""
    near = [hit for hit in hits if is_same_moment(moment, hit)]
    return next((hit for hit in near if hit.time_s <= moment.time_s < hit.end_s), near[0] if near else None)
