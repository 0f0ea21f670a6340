"""Measure the last step of an ingest alone, by the number of videos in the library: `python -m tests.bench.settle`.

The tables are real and on disk, the frames are made up. Rows of frames are appended as workers append them; then
the driver's own code makes the videos complete, so many a commit, and that alone is timed. The indexes are refreshed
beside it as in a run. CPU seconds are those of the whole process while the step ran, the refresh beside it included: on
a machine with other work they say more than the clock.
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from kinodex.bench.search import MadeFrame
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.towers import Fingerprint
from kinodex.index.store.indexes import refresh
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.commit import MOST_AT_ONCE, ReadVideo, VideoCommitter
from kinodex.jobs.ingest.run import LOOK_EVERY_S, refreshing_indexes
from kinodex.pipeline.fetch import FetchedVideo, Source, Stamp
from kinodex.pipeline.sample import Segment
from kinodex.pipeline.subtitles import Line
from tests.bench.coordinator import add_known
from tests.support.say import say

STEPS = 10
SEGMENT_FRAMES = 10
GOAL_A_SECOND, GOAL_GROWTH = 300.0, 1.3


@dataclass(frozen=True, slots=True)
class SettleLoad:
    """Videos to complete: `at_once` a commit; `frames_a_commit` frames are appended at a time, as by a worker."""

    videos: int
    frames: int = 600
    at_once: int = MOST_AT_ONCE
    frames_a_commit: int = 2048
    lines: int = 2
    dim: int = 8
    jpeg_bytes: int = 8
    known: int = 0
    """Videos, without frames, and their sources that the library has before."""
    look_every_s: float = LOOK_EVERY_S
    """Seconds between two looks of the refresh beside the step."""
    limit_s: float | None = None
    """Stop at the first tenth that ends after so many seconds."""


@dataclass(slots=True)
class SettleStep:
    """One tenth of the videos: seconds of the step alone, of the clock and of the CPU, and commits it made.

    `commits` counts new versions of all tables but for the appended frames, those of the refresh included; `peak_bytes`
    is the most memory of the process so far.
    """

    videos: int
    rows: int = 0
    clock_s: float = 0.0
    cpu_s: float = 0.0
    slowest_s: float = 0.0
    append_s: float = 0.0
    commits: int = 0
    peak_bytes: int = 0
    settled: int = 0

    @property
    def videos_a_second(self) -> float:
        return self.settled / self.clock_s

    @property
    def videos_a_cpu_second(self) -> float:
        return self.settled / self.cpu_s


@dataclass(frozen=True, slots=True)
class SettleFigures:
    """Figures by tenth. `growth` is the time a video took in the last over that in the first, `cpu_growth` of CPU."""

    load: SettleLoad
    steps: tuple[SettleStep, ...]
    growth: float
    cpu_growth: float
    machine: str


@dataclass(slots=True)
class _Films:
    """Made-up videos by number, all with the same frames."""

    load: SettleLoad
    space: str
    frames: list[MadeFrame] = field(init=False)
    digests: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Of the rows that are written, by table and video."""

    def __post_init__(self) -> None:
        random = np.random.default_rng(0)
        vectors = random.standard_normal((self.load.frames, self.load.dim))
        units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
        size = self.load.jpeg_bytes
        self.frames = [MadeFrame(n, float(n), random.bytes(size), unit, 16, 9) for n, unit in enumerate(units)]

    def read(self, number: int) -> ReadVideo:
        """Return what the driver knows of a video of which all frames are written."""
        load, video_id = self.load, _video_id(number)
        source = Source(f"/films/{number}.mp4", f"film {number}", stamp=Stamp(1000, str(number)))
        starts = range(0, load.frames, SEGMENT_FRAMES)
        segments = tuple(Segment(float(at), float(min(at + SEGMENT_FRAMES, load.frames)), "shot") for at in starts)
        lines = tuple(Line(float(n), n + 1.0, f"line {n} of film {number}", "sidecar") for n in range(load.lines))
        row = VideoRow(
            video_id=video_id, uri=source.uri, title=source.title, start_s=0.0, duration_s=float(load.frames),
            fps=25.0, width_px=16, height_px=9, codec="none", frames=load.frames, segments=len(segments),
            transcript_lines=len(lines), decode_errors=0, sample_fps=1.0, space=self.space, state="complete",
            ingested_at=datetime.now(UTC),
        )  # fmt: skip
        digests = {name: of_videos.pop(video_id) for name, of_videos in self.digests.items()}
        return ReadVideo(FetchedVideo(source, source.uri, video_id, 1000), row, segments, lines, None, digests)


def bench_settle(directory: Path, load: SettleLoad, report: Callable[[str], None]) -> SettleFigures:
    """Complete made-up videos in a new library in `directory`; raises UsageError if there is one already."""
    if Library.exists(str(directory)):
        raise UsageError(f"got {directory}, where there is a library already; give a new folder")
    fingerprint = Fingerprint("made-up", "0" * 12, "0" * 64, '{"size": 0}', load.dim)
    library = Library.create(str(directory), {"fps": 1.0}, fingerprint)
    films = _Films(load, library.space_name)
    if load.known:
        add_known(library, load.known)
        refresh(library.tables)
    began, steps = time.perf_counter(), list[SettleStep]()
    with library.lease("ingest", "tests.bench.settle") as lease, refreshing_indexes(library.uri, load.look_every_s):
        library.writer.note_rows()
        library.ingest_log.note_sources()
        committer = VideoCommitter(library, check=lease.check)
        for numbers in np.array_split(np.arange(load.videos), STEPS):
            steps.append(_settle(library, committer, films, range(int(numbers[0]), int(numbers[-1]) + 1), lease.check))
            report(_line(steps[-1]))
            if load.limit_s is not None and time.perf_counter() - began > load.limit_s:
                break
    first, last = steps[0], steps[-1]
    return SettleFigures(
        load,
        tuple(steps),
        first.videos_a_second / last.videos_a_second,
        first.videos_a_cpu_second / last.videos_a_cpu_second,
        f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores; pylance {version('pylance')}",
    )


def _settle(
    library: Library, committer: VideoCommitter, films: _Films, numbers: range, check: Callable[[], None]
) -> SettleStep:
    """Append the frames of these videos and make them complete."""
    load, step = films.load, SettleStep(numbers.stop, numbers.stop * films.load.frames)
    before, appends, appended = _versions(library), 0, numbers.start
    a_commit = max(1, -(-load.frames_a_commit // load.frames))
    for first in range(numbers.start, numbers.stop, load.at_once):
        until = min(first + load.at_once, numbers.stop)
        while appended < until:
            last = min(appended + a_commit, numbers.stop)
            began = time.perf_counter()
            written = library.writer.add_frames({_video_id(number): films.frames for number in range(appended, last)})
            step.append_s += time.perf_counter() - began
            for name, of_videos in written.items():
                films.digests[name].update(of_videos)
            appended, appends = last, appends + 1
        videos = [films.read(number) for number in range(first, until)]
        began, cpu_began = time.perf_counter(), time.process_time()
        check()  # as the coordinator does before each
        for video in videos:
            committer.add(video)
        complete, _ = committer.flush()
        took_s = time.perf_counter() - began
        step.clock_s, step.cpu_s = step.clock_s + took_s, step.cpu_s + time.process_time() - cpu_began
        step.slowest_s, step.settled = max(step.slowest_s, took_s), step.settled + len(complete)
    step.commits = _versions(library) - before - 2 * appends
    step.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return step


def _versions(library: Library) -> int:
    """Sum the versions of all tables but that of the leases, which the clock renews."""
    return sum(library.tables.version(name) for name in library.tables.names() if name != "leases")


def _video_id(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:32]


def table(figures: SettleFigures) -> str:
    """Write the figures as Markdown, for people."""
    load, last = figures.load, figures.steps[-1]
    met = last.videos_a_second >= GOAL_A_SECOND and figures.growth <= GOAL_GROWTH
    return "\n".join(
        [
            f"Made-up frames: {load.frames} a video, {load.at_once} videos a commit, {load.frames_a_commit} frames "
            f"appended at a time; {load.known:,} videos known before; {figures.machine}",
            "",
            "| videos | frames | videos a second | videos a CPU second | slowest commit s | commits | memory MB |",
            "|---|---|---|---|---|---|---|",
            *map(_line, figures.steps),
            "",
            f"the last tenth takes {figures.growth:.2f} times as long a video as the first ({figures.cpu_growth:.2f} "
            f"times the CPU); goal {GOAL_A_SECOND:g} videos a second and {GOAL_GROWTH:g}: {'met' if met else 'missed'}",
        ]
    )


def _line(step: SettleStep) -> str:
    return (
        f"| {step.videos:,} | {step.rows:,} | {step.videos_a_second:.0f} | {step.videos_a_cpu_second:.0f} "
        f"| {step.slowest_s:.2f} | {step.commits:,} | {step.peak_bytes / 1e6:.0f} |"
    )


def main(
    directory: Annotated[Path, typer.Argument(help="New folder for the made-up library.")],
    videos: Annotated[int, typer.Option(min=10, help="Videos to complete, in ten steps.")] = 50_000,
    frames: Annotated[int, typer.Option(min=1, help="Frames a video.")] = 600,
    at_once: Annotated[int, typer.Option(min=1, help="Videos a commit; a driver in a hurry takes 500.")] = 500,
    known: Annotated[int, typer.Option(min=0, help="Videos, without frames, that the library has before.")] = 0,
    limit: Annotated[float | None, typer.Option(min=1.0, help="Stop after so many seconds.")] = None,
) -> None:
    """Measure the last step of an ingest, which makes videos complete, by the library's size; frames are made up."""
    print(table(bench_settle(directory, SettleLoad(videos, frames, at_once, known=known, limit_s=limit), say)))


if __name__ == "__main__":
    typer.run(main)
