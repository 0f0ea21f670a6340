"""Searches of a library as the page shows them: hits by video, each with the reason why it was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.desk import Desk
from kinodex.index.kinds import ALL
from kinodex.index.library import Library
from kinodex.index.rows import Hit, VideoRow
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.verdicts import basis_of, claim
from kinodex.requests import Find, Ground
from kinodex.search.finder import Finder
from kinodex.web.ranges import grounding_view, play_range
from kinodex.web.reasons import By, why
from kinodex.web.text_towers import TextTowers

TEXTS_KEPT = 512
"""Texts whose meanings are kept: somebody who types and deletes comes back to most."""
VIDEOS_KEPT = 256
"""Videos whose frame times are kept, for lines and captions to be shown with the frame of their time."""
MOST_OF_A_VIDEO = 12
"""Hits of one video among those of several: the rest are found by a search of that video."""
FrameTimes = Callable[[VideoRow], tuple[NDArray[np.int32], NDArray[np.float64]]]


class LibrarySearch:
    """The desk of a library in one of its spaces, for one thread, and what it finds as the page shows it.

    Each raises SpaceError where a tower is needed and cannot be had, UsageError, QueryError or UnknownVideo.
    """

    def __init__(self, library: Library, space: Fingerprint, towers: TextTowers | None = None) -> None:
        self.library = library
        self.space = space
        self._towers = towers or TextTowers()
        self._meanings = lru_cache(TEXTS_KEPT)(lambda model, text: library.sentences.meaning(text))
        # by the whole row: a video that was ingested again has other frames
        self._frame_times = lru_cache(VIDEOS_KEPT)(lambda video: library.frame_times(video.video_id))
        embed_text = partial(self._towers.embed, library.uri, space)
        finder = Finder(
            library, space.digest, vectors=self._towers.vectors, embed_text=embed_text, meaning_of=self._meaning_of
        )
        self._desk = Desk(library, space=space.digest, finder=finder)

    @property
    def text_tower(self) -> TextEmbedder:
        """Embedder of texts; waits until it is loaded."""
        return self._towers.begin(self.library.uri, self.space).result()

    def search(self, request: Find, picture: bytes | None = None) -> dict[str, Any]:
        """Return groups of moments (see `groups_view`) for words, like a frame, or like a picture and its words."""
        by: By = "frame" if request.like else "words" if picture is None else "picture"
        found = self._desk.find(request, picture)
        text = request.query if by == "words" else ""
        one_video = len(request.videos) == 1
        return groups_view(self.library, found.hits, text, by, self._frame_times, one_video) | {"notes": found.notes}

    def ground(self, request: Ground) -> dict[str, Any]:
        """Return the ranges that fit a text best (see `grounding_view`)."""
        found = self._desk.ground(request)
        return grounding_view(self.library, found, self._desk.environment(request))

    def _meaning_of(self, text: str) -> Meaning | None:
        """Return the meaning of a text by the sentence model that the library has now, if it has one."""
        model = self.library.sentences.space()
        return None if model is None else self._meanings(model.digest, text)


def needs_vector(library: Library, request: Find, space: Fingerprint) -> bool:
    """Return True if a search embeds the words of its request."""
    if not space.has_vectors or request.like is not None or not request.query.strip():
        return False
    in_own = space.digest == library.fingerprint.digest
    return request.in_ in (ALL, "frames") or (request.in_ == "captions" and in_own)


def groups_view(
    library: Library, hits: Sequence[Hit], text: str, by: By, frame_times: FrameTimes, one_video: bool = False
) -> dict[str, Any]:
    """Group hits by video, in the order of each video's best.

    Gives `{"count", "basis", "claim", "groups": [{..., "hits": [...]}]}`; `claim` says what the `basis` allows. A
    hit's `score` is that of its search, which says nothing beside another's (see `Hit`). `similarity` is the cosine of
    its frame, if its picture was found.
    """
    by_video: dict[str, list[Hit]] = {}
    for hit in hits:
        by_video.setdefault(hit.video_id, []).append(hit)
    rows = library.visible.videos(by_video.keys())
    most = len(hits) if one_video or len(by_video) == 1 else MOST_OF_A_VIDEO
    groups: list[dict[str, Any]] = [
        {
            "video_id": video_id,
            "title": row.title,
            "duration_s": row.duration_s,
            "more": max(0, len(found) - most),
            "hits": [_hit_view(hit, row, frame_times) | {"why": why(hit, text, by)} for hit in found[:most]],
        }
        for video_id, found in by_video.items()
        if (row := rows.get(video_id)) is not None
    ]
    said = {"basis": basis_of(hits), "claim": claim(hits)}
    return {"count": sum(len(group["hits"]) for group in groups), **said, "groups": groups}


def _hit_view(hit: Hit, video: VideoRow, frame_times: FrameTimes) -> dict[str, Any]:
    frame_no, frame = hit.frame_no, hit.part("frames")
    if frame_no is None:  # that nearest to its middle, where the video has frames
        numbers, times_s = frame_times(video)
        frame_no = int(numbers[np.argmin(np.abs(times_s - (hit.time_s + hit.end_s) / 2))]) if len(numbers) else None
    return {
        "start_s": hit.time_s,
        "end_s": hit.end_s,
        "play": play_range(video, hit.time_s, hit.end_s),
        "frame_no": frame_no,
        "score": hit.score,
        "similarity": None if frame is None or frame.cosine is None else round(frame.cosine, 4),
        "found_in": hit.found_in,
        "parts": [part.found_in for part in hit.parts],
        "text": hit.text,
        **{name: getattr(hit, name) for name in ("basis", "probability", "present", "reason", "query")},
    }
