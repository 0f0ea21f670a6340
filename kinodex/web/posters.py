"""Posters of videos: a small picture of each video's most telling frame."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.index.library import Library
from kinodex.index.rows import StoredFrame, VideoRow
from kinodex.jobs.library import shrunk_jpeg
from kinodex.server.responses import NotGiven, numbered
from kinodex.web.telling_frames import candidates, evenly, first_telling

POSTER_SIDE_PX, POSTER_QUALITY = 480, 80
KEPT_BYTES = 48 << 20


class NoPoster(NotGiven):
    """A video without frames, or without one that can be read."""


@dataclass(frozen=True, slots=True)
class Poster:
    """A JPEG of at most `SIDE_PX`, the number of its frame, and a tag that changes with the video."""

    jpeg: bytes
    frame_no: int
    tag: str


class Posters:
    """Posters of libraries by number and video, the last few thousand kept; for one thread at a time."""

    def __init__(self, uris: Sequence[str], kept_bytes: int = KEPT_BYTES) -> None:
        self._uris = uris
        self._libraries: dict[int, Library] = {}
        self._kept: OrderedDict[str, Poster] = OrderedDict()
        self._room = kept_bytes

    def poster(self, number: int, video_id: str) -> Poster:
        """Choose the poster of a video, or take it from memory; raises NotGiven, NoPoster or UnknownVideo."""
        tag = self.tag(number, video_id)
        if tag not in self._kept:
            library = self._library(number)
            row = library.video(video_id)
            frame = telling_frame(library, row)
            self._keep(Poster(shrunk_jpeg(frame, POSTER_SIDE_PX, POSTER_QUALITY), frame.frame_no, tag))
        self._kept.move_to_end(tag)
        return self._kept[tag]

    def tag(self, number: int, video_id: str) -> str:
        """Tag of a video's poster, which changes when it is ingested again; raises NotGiven or UnknownVideo."""
        row = self._library(number).video(video_id)
        parts = (number, row.video_id, row.frames, row.ingested_at.isoformat())
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]

    def _library(self, number: int) -> Library:
        uri = numbered(self._uris, number, "library")
        if number not in self._libraries:
            self._libraries[number] = Library.open(uri)
        return self._libraries[number]

    def _keep(self, poster: Poster) -> None:
        self._kept[poster.tag] = poster
        self._room -= len(poster.jpeg)
        while self._room < 0 and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._room += len(oldest.jpeg)


def telling_frame(library: Library, row: VideoRow) -> StoredFrame:
    if not row.frames:
        raise NoPoster(f"got {row.title}, which has only text and no frames")
    if library.fingerprint.has_vectors:
        numbers = candidates(library.vectors(row.video_id))
    else:
        numbers = evenly(library.frame_times(row.video_id)[0])
    frame = first_telling(library.frames(row.video_id, numbers))
    if frame is None:
        raise NoPoster(f"got {row.title}, of which no picture can be read; ingest it again")
    return frame
