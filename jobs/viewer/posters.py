"""The poster of a video: its most telling frame, small.

The vectors of a video's frames are grouped by spherical k-means (Dhillon and Modha 2001, "Concept decompositions for
large sparse text data", section 3), and the frame nearest to the mean of each group stands for it, that of the largest
group first. The first of them that is neither dark, nor blank, nor a card of text on plain ground is the poster; where
all are, it is the one with the most shades.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.rows import FrameVectors, StoredFrame, VideoRow
from jobs.stored_frames import grey_values, shrunk_jpeg
from jobs.viewer.api import NotGiven
from pipeline.errors import PictureError

SIDE_PX, JPEG_QUALITY = 480, 80
GROUPS, STEPS = 6, 5
MOST_FRAMES = 512
"""Frames of a longer video are thinned to these, evenly, before they are grouped."""
CANDIDATES = 8
MIN_BRIGHTNESS, MAX_BRIGHTNESS = 28.0, 236.0
MIN_CONTRAST = 14.0
"""Standard deviation of the grey values, 0 to 255."""
MOST_OF_ONE_SHADE = 0.72
"""Part of a picture in one of 16 shades; cards of text have more."""
SHADES = 16
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
            self._keep(Poster(shrunk_jpeg(frame, SIDE_PX, JPEG_QUALITY), frame.frame_no, tag))
        self._kept.move_to_end(tag)
        return self._kept[tag]

    def tag(self, number: int, video_id: str) -> str:
        """Tag of a video's poster; raises NotGiven or UnknownVideo."""
        return tag_of(number, self._library(number).video(video_id))

    def _library(self, number: int) -> Library:
        if not 0 <= number < len(self._uris):
            raise NotGiven(f"got library {number}; there are {len(self._uris)}, counted from 0")
        if number not in self._libraries:
            self._libraries[number] = Library.open(self._uris[number])
        return self._libraries[number]

    def _keep(self, poster: Poster) -> None:
        self._kept[poster.tag] = poster
        self._room -= len(poster.jpeg)
        while self._room < 0 and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._room += len(oldest.jpeg)


def tag_of(number: int, row: VideoRow) -> str:
    """Make a tag that changes whenever a video is ingested again."""
    parts = (number, row.video_id, row.frames, row.ingested_at.isoformat())
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]


def telling_frame(library: Library, row: VideoRow) -> StoredFrame:
    """Choose the frame that says most about a video; raises NoPoster."""
    if not row.frames:
        raise NoPoster(f"got {row.title}, which has only text and no frames")
    frame = first_telling(library.frames(row.video_id, candidates(library.vectors(row.video_id))))
    if frame is None:
        raise NoPoster(f"got {row.title}, of which no picture can be read; ingest it again")
    return frame


def first_telling(frames: Sequence[StoredFrame]) -> StoredFrame | None:
    """Choose the first telling one of some frames, else the one with the most shades; None if none can be read."""
    shades = {frame.frame_no: values for frame in frames if (values := _grey(frame)) is not None}
    readable = [frame for frame in frames if frame.frame_no in shades]
    telling = (frame for frame in readable if is_telling(shades[frame.frame_no]))
    return next(telling, None) or max(readable, key=lambda frame: variety(shades[frame.frame_no]), default=None)


def candidates(stored: FrameVectors) -> list[int]:
    """List the numbers of up to `CANDIDATES` frames that stand for a video, the best first."""
    every = np.linspace(0, len(stored.frame_no) - 1, min(len(stored.frame_no), MOST_FRAMES)).round().astype(int)
    if len(every) > 1:
        every = every[1:]  # films open with black and with logos
    ranked = [every[group] for group in groups(stored.vectors[every].astype(np.float32))]
    in_turn = [int(at) for turn in zip_longest(*ranked) for at in turn if at is not None]
    return [int(stored.frame_no[at]) for at in in_turn[:CANDIDATES]]


def groups(vectors: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Group unit vectors `[n, dim]`: the rows of each group from its mean outwards, the largest group first."""
    count = min(GROUPS, -(-len(vectors) // 3))
    middles = vectors[((np.arange(count) + 0.5) * len(vectors) / count).astype(int)]
    for _ in range(STEPS):
        nearest = (vectors @ middles.T).argmax(axis=1)
        middles = np.stack([_mean(vectors[nearest == group], middles[group]) for group in range(count)])
    similarities = vectors @ middles.T
    nearest = similarities.argmax(axis=1)
    found = [np.flatnonzero(nearest == group) for group in range(count)]
    order = sorted(range(count), key=lambda group: (-len(found[group]), group))
    return [found[g][np.argsort(-similarities[found[g], g], kind="stable")] for g in order if len(found[g])]


def is_telling(grey: NDArray[np.uint8]) -> bool:
    """True for grey values `[height, width]` that are neither dark, nor blank, nor almost all of one shade."""
    shades = np.bincount(grey.ravel() // (256 // SHADES), minlength=SHADES) / grey.size
    return bool(
        MIN_BRIGHTNESS <= grey.mean() <= MAX_BRIGHTNESS
        and grey.std() >= MIN_CONTRAST
        and shades.max() <= MOST_OF_ONE_SHADE
    )


def variety(grey: NDArray[np.uint8]) -> float:
    """Entropy of the grey values, in bits: 0 for a blank picture."""
    part = np.bincount(grey.ravel(), minlength=256) / grey.size
    part = part[part > 0]
    return float(-(part * np.log2(part)).sum())


def _grey(frame: StoredFrame) -> NDArray[np.uint8] | None:
    """Read a frame's grey values small; None if it cannot be read, so that another frame is chosen."""
    try:
        return grey_values(frame)
    except PictureError:
        return None


def _mean(vectors: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    total: NDArray[np.float32] = vectors.sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length else before
