"""Make a library of made-up rows for measuring search: no video, no model, only numbers distributed like real ones.

Each video has scenes, each scene a direction near one of the library's topics, each frame a direction near its
scene's: so frames crowd together as those of real videos do, and a query has near and far neighbours. Words are drawn
by Zipf's law.

In a narrow cone (`Size.is_cone`) all frames share one direction and all queries another, as pictures and texts of
CLIP's kind do (Liang et al. 2022, "Mind the gap"): the cosines of the best matches are 0.06 to 0.3, as SigLIP's are,
and those of all others are not much lower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from index.embedding.space import Fingerprint
from index.library import Library
from index.maintenance.sweep import sweep
from index.rows import VideoRow

TOPICS, SCENES = 300, 20
SCENE_SPREAD, FRAME_SPREAD = 0.8, 0.5
CONE_QUERY_SPREAD = 1.0
CONE_QUERY_SHARE = (0.15, 0.6)
"""Length of what a query has in common with frames, beside 1 for the direction that all queries share."""
WORDS, WORDS_A_LINE = 20_000, 8
VIDEOS_A_COMMIT = 10
MODEL = "made up"
Vectors = NDArray[np.float16]


class Size(NamedTuple):
    """Size of a made-up library: `lines` transcript lines and as many captions a video, a `jpeg_bytes` JPEG a frame."""

    videos: int
    frames: int
    lines: int
    dim: int
    jpeg_bytes: int
    is_cone: bool = False
    """Vectors lie in a narrow cone."""

    @property
    def settings(self) -> dict[str, int]:
        """Settings that the library keeps, as those without a cone always had them."""
        return {name: number for name, number in self._asdict().items() if name != "is_cone" or number}

    @property
    def topic_dim(self) -> int:
        """Numbers of a vector that tell topics, scenes and frames apart."""
        return self.dim - 2 if self.is_cone else self.dim


class MadeFrame(NamedTuple):
    """A made-up frame, as `VideoWriter` takes it."""

    frame_no: int
    time_s: float
    jpeg: bytes
    vector: Vectors
    width_px: int = 512
    height_px: int = 288


class _Line(NamedTuple):
    start_s: float
    end_s: float
    text: str
    source: str = "sidecar"
    language: str | None = None
    speaker: str | None = None


class MadeCaption(NamedTuple):
    """A made-up caption, as `Additions.add_captions` takes it."""

    segment_no: int
    start_s: float
    end_s: float
    text: str
    vector: Vectors | None
    confidence: float | None = None


def make_library(uri: str, size: Size, report: Callable[[int], None]) -> tuple[Library, float]:
    """Make the library at `uri`, or complete the one that is there, and return it with the seconds spent.

    `report` is called with the number of videos that are there. Raises SettingsMismatch if the
    library there is of another size.
    """
    library = Library.open_or_create(uri, size.settings, made_fingerprint(size.dim))
    began = time.perf_counter()
    present = {row.video_id for row in library.videos()}
    missing = [number for number in range(size.videos) if video_id(number) not in present]
    sweep(library)
    for first in range(0, len(missing), VIDEOS_A_COMMIT):
        _write(library, missing[first : first + VIDEOS_A_COMMIT], size)
        report(size.videos - len(missing) + min(first + VIDEOS_A_COMMIT, len(missing)))
    return library, time.perf_counter() - began


def made_fingerprint(dim: int) -> Fingerprint:
    """Make the fingerprint of a space that no model embeds in."""
    return Fingerprint("made-up", "0" * 12, "0" * 64, '{"size": 0}', dim)


def video_id(number: int) -> str:
    """Make the id of the video of this number."""
    return f"{number:064x}"


def queries(count: int, size: Size) -> NDArray[np.float32]:
    """Make unit vectors [count, dim], each near a frame of another video."""
    random = np.random.default_rng(1)
    numbers = random.integers(size.videos, size=count)
    frames = np.stack([_topic_vectors(int(n), size)[random.integers(size.frames)] for n in numbers])
    spread = CONE_QUERY_SPREAD if size.is_cone else FRAME_SPREAD
    near = _unit(frames + spread * _directions(random, count, size.topic_dim))
    if not size.is_cone:
        return near
    share = random.uniform(*CONE_QUERY_SHARE, (count, 1)).astype(np.float32)
    return _unit(np.hstack([share * near, np.zeros((count, 1), np.float32), np.ones((count, 1), np.float32)]))


def words(count: int, seed: int) -> list[str]:
    """Make texts of two words, neither the commonest nor the rarest."""
    random = np.random.default_rng(seed)
    return [" ".join(_word(int(n)) for n in random.integers(10, 2_000, size=2)) for _ in range(count)]


def frame_vectors(number: int, size: Size) -> Vectors:
    """Make the vectors [frames, dim] of one video."""
    vectors = _topic_vectors(number, size)
    if size.is_cone:
        shared = np.tile(np.array([1, 0], np.float32), (size.frames, 1))
        vectors = _unit(np.hstack([vectors, shared]))
    return vectors.astype(np.float16)


def _topic_vectors(number: int, size: Size) -> NDArray[np.float32]:
    random = np.random.default_rng([0, number])
    topics = _directions(np.random.default_rng(0), TOPICS, size.topic_dim)[random.integers(TOPICS, size=SCENES)]
    scenes = _unit(topics + SCENE_SPREAD * _directions(random, SCENES, size.topic_dim))
    shown = np.sort(random.integers(SCENES, size=size.frames))
    return _unit(scenes[shown] + FRAME_SPREAD * _directions(random, size.frames, size.topic_dim))


def _write(library: Library, numbers: Sequence[int], size: Size) -> None:
    vectors = {number: frame_vectors(number, size) for number in numbers}
    frames = {video_id(number): _frames(number, size, vectors[number]) for number in numbers}
    digests = library.writer.add_frames(frames)
    lines = {video_id(number): list(_lines(number, size)) for number in numbers}
    digests["transcript"] = library.writer.add_transcript(lines)
    captions = {video_id(number): list(_captions(number, size, vectors[number])) for number in numbers}
    library.writer.complete([made_row(number, size) for number in numbers], digests=digests)
    library.additions.add_captions(captions, MODEL)
    library.additions.complete("captions", MODEL, {id_: len(rows) for id_, rows in captions.items()}, {})


def _frames(number: int, size: Size, vectors: Vectors) -> list[MadeFrame]:
    noise = np.random.default_rng(number).bytes(size.frames * size.jpeg_bytes)
    cuts = range(0, len(noise), size.jpeg_bytes)
    pictures = [noise[first : first + size.jpeg_bytes] for first in cuts]
    return [
        MadeFrame(n, float(n), jpeg, vector) for n, (jpeg, vector) in enumerate(zip(pictures, vectors, strict=True))
    ]


def made_row(number: int, size: Size) -> VideoRow:
    """Make the row of one complete video."""
    return VideoRow(
        video_id=video_id(number),
        uri=f"made-up://{number}",
        title=f"video {number}",
        start_s=0.0,
        duration_s=float(size.frames),
        fps=25.0,
        width_px=512,
        height_px=288,
        codec="none",
        frames=size.frames,
        segments=0,
        transcript_lines=size.lines,
        decode_errors=0,
        sample_fps=1.0,
        space="made-up",
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def _lines(number: int, size: Size) -> Iterator[_Line]:
    for at, text in enumerate(_texts(2 * number, size.lines)):
        yield _Line(at * size.frames / size.lines, (at + 1) * size.frames / size.lines, text)


def _captions(number: int, size: Size, vectors: Vectors) -> Iterator[MadeCaption]:
    for at, text in enumerate(_texts(2 * number + 1, size.lines)):
        start_s, end_s = at * size.frames / size.lines, (at + 1) * size.frames / size.lines
        yield MadeCaption(at, start_s, end_s, text, vectors[int(start_s)])


def _texts(seed: int, count: int) -> list[str]:
    numbers = np.random.default_rng([1, seed]).zipf(1.3, size=(count, WORDS_A_LINE)) % WORDS
    return [" ".join(_word(int(number)) for number in line) for line in numbers]


def _word(number: int) -> str:
    """Make a word of its own for each number: its digits to the base of 20 as syllables."""
    word = ""
    while number or not word:
        number, digit = divmod(number, 20)
        word += "bdfgklmnprstvzjhcxwy"[digit] + "aeiou"[digit % 5]
    return word


def _directions(random: np.random.Generator, count: int, dim: int) -> NDArray[np.float32]:
    return _unit(random.standard_normal((count, dim), dtype=np.float32))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    units: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units
