"""A library as the page draws it: its videos, one video in full, and the hits of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.embedding.space import Fingerprint
from index.errors import QueryError
from index.library import Library
from index.rows import Hit, Scope

EmbedText = Callable[[str], NDArray[np.float32]]
ROWS = 100
"""Rows of a table that the page shows at a time."""
MOST_HITS = 100
MIN_GAP_S = 2.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for a text in one kind of row (see `_hits`), in one video or all, in `[start_s, end_s)`."""

    text: str
    kind: str = "together"
    video_id: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    most: int = 24


def videos_page(library: Library, words: str, start: int) -> dict[str, Any]:
    """Page of `ROWS` videos by title from the `start`-th on, of the `count` with these words in title or URI."""
    return _page([row for row in library.videos() if _contains(words, row.title, row.uri)], start)


def failures_page(library: Library, words: str, start: int) -> dict[str, Any]:
    """Page of sources that failed, by words of their URIs or reasons."""
    return _page([row for row in library.ingest_log.failures() if _contains(words, row.uri, row.message)], start)


def video_view(library: Library, video_id: str) -> dict[str, Any]:
    """One video with the times of its frames, segments, captions, transcript and detections. Raises UnknownVideo."""
    row = library.video(video_id)
    stored = library.vectors(video_id) if row.frames else None
    return {
        "video": row,
        "frame_nos": [] if stored is None else stored.frame_no.tolist(),
        "times_s": [] if stored is None else stored.time_s.tolist(),
        "segments": library.segments(video_id),
        "captions": library.captions(video_id),
        "transcript": library.transcript(video_id),
        "detections": library.detections(video_id),
    }


def search_view(library: Library, request: SearchRequest, embed: EmbedText, space: Fingerprint) -> list[dict[str, Any]]:
    """Best hits, each with the title of its video and the frame that is on screen then, if there is one.

    `space` is the library's space whose vectors are searched; `embed` embeds a text in it. Raises QueryError for an
    empty text or an unknown kind, and UnknownVideo.
    """
    if not request.text.strip():
        raise QueryError("the search is empty; give some words to look for")
    titles = {row.video_id: row.title for row in library.videos()}
    return [
        {
            "video_id": hit.video_id,
            "title": titles[hit.video_id],
            "start_s": hit.time_s,
            "end_s": hit.end_s,
            "frame_no": _frame_no(library, hit),
            "score": hit.score,
            "source": hit.source,
            "text": hit.text,
        }
        for hit in _hits(library, request, embed, space)
    ]


def _contains(words: str, *texts: str) -> bool:
    return any(words.casefold() in text.casefold() for text in texts)


def _page(rows: Sequence[Any], start: int) -> dict[str, Any]:
    return {"count": len(rows), "rows": rows[start : start + ROWS]}


def _hits(library: Library, request: SearchRequest, embed: EmbedText, space: Fingerprint) -> list[Hit]:
    ids = None if request.video_id is None else (library.video(request.video_id).video_id,)
    scope, k, text = Scope(ids, request.start_s, request.end_s), min(request.most, MOST_HITS), request.text
    match request.kind:
        case "together":
            return library.search.hybrid(text, embed(text), scope, k, MIN_GAP_S, space.digest)
        case "frames":
            return library.search.frames(embed(text), scope, k, MIN_GAP_S, space.digest)
        case "transcript":
            return library.search.transcript(text, scope, k)
        case "captions":
            in_own = space.digest == library.fingerprint.digest  # the space that captions have vectors in
            return library.search.captions(text, embed(text) if in_own else None, scope, k)
        case "detections":
            return library.search.detections(text, 0.0, scope, k, MIN_GAP_S)
    raise QueryError(f"got kind {request.kind!r}; it is together, frames, transcript, captions or detections")


def _frame_no(library: Library, hit: Hit) -> int | None:
    if hit.frame_no is not None:
        return hit.frame_no
    row = library.video(hit.video_id)
    if not row.frames:
        return None
    middle_s = min(max((hit.time_s + hit.end_s) / 2, row.start_s), row.end_s - 1e-6)
    return library.frames_at(hit.video_id, [middle_s])[0].frame_no
