"""A small library on disk with random pictures, and numpy's answer to a search, for the tests of `index`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kinodex.index.additions import stage_rows
from kinodex.index.clocks import first_zero_s
from kinodex.index.kinds import KindName
from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, Hit, SpeechRow, SpokenWord, VideoRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import all_of, one_of
from kinodex.pipeline.sample import FrameRow

DIM = 32
SETTINGS = {"fps": 1.0, "jpeg_side_px": 512}
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def fingerprint(name: str = "local-dir:/models/tiny", weights: str = "a" * 64, dim: int = DIM) -> Fingerprint:
    return Fingerprint(name, "0123456789ab", weights, '{"size": 64}', dim)


def rows_held(tables: Tables, stage: str, model: str, video_ids: Iterable[str]) -> Counter[str]:
    """Count the rows of a stage and model that each video has, complete or not."""
    table, of_model = stage_rows(tables, stage, model)
    return Counter(tables.rows(table, all_of([one_of("video_id", list(video_ids)), *of_model]))["video_id"].to_pylist())


def empty_library(place: Path, settings: Mapping[str, Any], space: Fingerprint) -> Library:
    """An empty library in a new folder, as `Library.create` leaves it: copied from one, a tenth of the work."""
    assert not Library.exists(str(place)), "there is one"
    for name, content in _empty_files(json.dumps(settings), space).items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Library.open(str(place))


@cache
def _empty_files(settings: str, space: Fingerprint) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        Library.create(str(root), json.loads(settings), space)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class MadeVideo:
    """A video as a test writes it; frame n is at start_s + n."""

    video_id: str
    vectors: NDArray[np.float16]
    start_s: float = 0.0
    lines: tuple[tuple[float, float, str], ...] = ()

    @property
    def times_s(self) -> NDArray[np.float64]:
        return self.start_s + np.arange(len(self.vectors), dtype=np.float64)

    def frame_rows(self) -> list[FrameRow]:
        return [
            FrameRow(n, float(t), 64, 36, f"jpeg {self.video_id} {n}".encode(), v)
            for n, (t, v) in enumerate(zip(self.times_s, self.vectors, strict=True))
        ]

    def speech(self) -> list[SpeechRow]:
        return [SpeechRow(self.video_id, start, end, text, "sidecar", "en") for start, end, text in self.lines]

    def video_row(self, title: str | None = None) -> VideoRow:
        uri = f"/films/{title or self.video_id}.mp4"
        return plain_row(
            self.video_id,
            title or f"film {self.video_id}",
            uri=uri,
            start_s=self.start_s,
            zero_s=first_zero_s(uri, self.start_s),
            duration_s=float(len(self.vectors)),
            width_px=640,
            height_px=360,
            codec="h264",
            frames=len(self.vectors),
            speech_lines=len(self.lines),
            space="local-dir:/models/tiny",
            ingested_at=WHEN,
        )


def plain_row(video_id: str, title: str, **facts: Any) -> VideoRow:
    """The row of a video without anything in it, but for these facts."""
    counts: dict[str, Any] = dict.fromkeys(("frames", "segments", "speech_lines", "decode_errors"), 0)
    usual: dict[str, Any] = {
        "uri": title,
        "start_s": 0.0,
        "fps": 25.0,
        "width_px": 64,
        "height_px": 36,
        "codec": "none",
        **counts,
    }
    usual |= {"sample_fps": 1.0, "state": "complete", "ingested_at": datetime.now(UTC)}
    return VideoRow(video_id=video_id, title=title, **(usual | facts))


def unit_vectors(count: int, seed: int) -> NDArray[np.float16]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    units: NDArray[np.float16] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return units


def made(video_id: str, count: int, seed: int, **rest) -> MadeVideo:
    return MadeVideo(video_id, unit_vectors(count, seed), **rest)


def write(library: Library, video: MadeVideo, title: str | None = None, complete: bool = True) -> None:
    library.writer.add_frames({video.video_id: video.frame_rows()})
    library.writer.add_speech({video.video_id: video.speech()})
    if complete:
        assert library.writer.complete([video.video_row(title)]) == ()


def write_all(library: Library, videos: Sequence[MadeVideo]) -> None:
    """Write videos in one commit of each table."""
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.add_speech({video.video_id: video.speech() for video in videos})
    assert library.writer.complete([video.video_row() for video in videos]) == ()


def numpy_search(
    videos: list[MadeVideo],
    query: NDArray[np.float32],
    k: int,
    min_gap_s: float = 0.0,
    start_s: float = -np.inf,
    end_s: float = np.inf,
) -> list[tuple[str, int]]:
    """The same search by brute force: (video_id, frame_no), best first."""
    scored = [
        (-float(v.astype(np.float32) @ query / np.linalg.norm(v.astype(np.float32))), video.video_id, n, float(t))
        for video in videos
        for n, (v, t) in enumerate(zip(video.vectors, video.times_s, strict=True))
        if start_s <= t < end_s
    ]
    kept: list[tuple[str, int, float]] = []
    for _, video_id, n, t in sorted(scored):
        if all(other != video_id or abs(t - time_s) >= min_gap_s for other, _, time_s in kept):
            kept.append((video_id, n, t))
    return [(video_id, n) for video_id, n, _ in kept[:k]]


def found(hits: list[Hit]) -> list[tuple[str, int | None]]:
    return [(hit.video_id, hit.frame_no) for hit in hits]


@contextmanager
def no_room(bytes_a_file: int = 100) -> Iterator[None]:
    """A disk on which no file can grow beyond this size, as Linux counts it for this process."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


OTHER_DIM = 24


def other_space(weights: str = "b" * 64) -> Fingerprint:
    """A space that no library of the tests is made with."""
    return fingerprint("local-dir:/models/other", weights, OTHER_DIM)


def vectors_of(count: int, seed: int, dim: int = OTHER_DIM) -> FrameVectors:
    """Unit vectors of `count` frames, one a second from 0 on."""
    vectors = np.random.default_rng(seed).standard_normal((count, dim))
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return FrameVectors(np.arange(count, dtype=np.int32), np.arange(count, dtype=np.float64), units)


def caption(segment_no: int, text: str, vector: NDArray[np.float16] | None = None) -> SimpleNamespace:
    """A caption of the segment of ten seconds with this number, as a captioner hands it over."""
    times = {"start_s": 10.0 * segment_no, "end_s": 10.0 * segment_no + 10.0}
    return SimpleNamespace(segment_no=segment_no, text=text, confidence=0.5, vector=vector, **times)


def detection(frame_no: int, label: str, score: float, track_id: int | None = None) -> SimpleNamespace:
    """A detection in a frame, of which there is one a second, as a detector hands it over."""
    box = (0.125, 0.25, 0.5, 0.75)
    return SimpleNamespace(
        frame_no=frame_no, time_s=float(frame_no), label=label, score=score, box=box, track_id=track_id
    )


def spoken(
    number: float, text: str, speaker: str | None = None, language: str = "en", words: tuple[SpokenWord, ...] = ()
) -> SimpleNamespace:
    """A line of two seconds, as a speech model hands it over."""
    times = {"start_s": 2.0 * number, "end_s": 2.0 * number + 2.0}
    return SimpleNamespace(**times, text=text, language=language, speaker=speaker, words=words)


def voice(axis: int, seconds: float = 5.0, noise: float = 0.0) -> SimpleNamespace:
    """A voice along one of 255 axes, with this much of what all voices share."""
    vector = np.zeros(256, np.float32)
    vector[axis], vector[-1] = np.sqrt(1 - noise**2), noise
    return SimpleNamespace(vector=vector, seconds=seconds)


def add_stage(
    library: Library,
    stage: str,
    model: str,
    rows: Mapping[str, Any],
    complete: bool = True,
    settings: Any = MappingProxyType({}),
) -> None:
    """Add what a model found in videos, a list of rows each; complete, unless as a run leaves it that was killed."""
    write_rows = getattr(library.additions, f"add_{stage}", None) or partial(library.lines.add, cast(KindName, stage))
    write_rows(rows, model)
    if complete:
        counts = {video_id: len(each) for video_id, each in rows.items()}
        assert library.additions.complete(stage, model, counts, settings) == ()


def run_together(processes: Sequence[BaseProcess], meanwhile: Callable[[], object] = lambda: None) -> None:
    """Start processes, do something in this one, and wait until every one has ended well."""
    for process in processes:
        process.start()
    meanwhile()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
