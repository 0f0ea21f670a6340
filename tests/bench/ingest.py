"""Measure an ingest against a competent script and two other programs: `python -m tests.bench.ingest VIDEO`.

All are whole processes, from the command to its end: what a person waits for. Times of different runs do not compare
on a shared machine, so everything is run in turn, round by round, and medians are reported; CPU seconds are of the
process and all its children, memory is the largest sum of theirs (proportional, so shared pages count once).
kinodex runs twice in a round: with an empty cache, and then into another library, as every time after the first.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.doctor.alone import Lost
from kinodex.index.spaces.arithmetic import processor_facts
from kinodex.output import tell
from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.source import Source
from tests.bench.figures import FpsOption, JsonOption, RoundsOption, show
from tests.bench.random_space import make_random_space

if TYPE_CHECKING:
    from kinodex.jobs.ingest.config import IngestConfig


MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "onnxruntime", "pylance")
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "bf16")
"""Of the processor, those on which the speed of embedding hangs."""
FIRST, NEXT, SCRIPT = "kinodex, first run", "kinodex, next library", "script"
PEERS = {"pixeltable": "pixeltable>=0.7", "daft": "daft>=0.7"}
"""Programs of others and what is installed for each, in an environment of its own above this one."""
ROOT = Path(__file__).resolve().parents[2]
KINODEX = "from kinodex.cli.main import main; main()"
PEER = "from tests.bench.peer_{} import main; main()"
INSTALL_LIMIT_S, RUN_LIMIT_S = 900.0, 3600.0


@dataclass(frozen=True, slots=True)
class WholeRun:
    """One run of a program: seconds, CPU seconds of all its processes, and their memory in MB at its peak."""

    seconds: float
    cpu_s: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class VideoFigures:
    """Medians over the rounds, by program, for one video."""

    video: str
    picture: str
    video_s: float
    runs: Mapping[str, WholeRun]


@dataclass(frozen=True, slots=True)
class IngestFigures:
    """Figures of all videos, and reasons why a program was left out."""

    videos: tuple[VideoFigures, ...]
    left_out: Mapping[str, str]
    rounds: int
    fps: float
    machine: str
    load: tuple[float, float]
    """Programs that wanted a core, as the system counts them for a minute: before, and after."""
    versions: str


def bench_ingest(
    paths: Sequence[Path],
    model: Path,
    rounds: int,
    peers: Sequence[str] = (),
    fps: float = 1.0,
    report: Callable[[str], None] = lambda line: None,
) -> IngestFigures:
    """Measure ingests of each of these videos in the space of a folder with an open_clip model."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kinodex-bench-") as scratch:
        pythons, left_out = _environments(Path(scratch), peers, report)
        videos = []
        for path in paths:
            found: dict[str, list[WholeRun]] = defaultdict(list)
            for number in range(rounds):
                for program, run in _round(Path(scratch), path, model, fps, pythons, left_out):
                    found[program].append(run)
                    report(f"{path.name}, round {number + 1}, {program}: {run.seconds:.1f} s, {run.cpu_s:.1f} CPU s")
            metadata = probe(path)
            medians = {program: _median(runs) for program, runs in found.items()}
            picture = f"{metadata.width_px}x{metadata.height_px} {metadata.codec}"
            videos.append(VideoFigures(path.name, picture, metadata.claimed_duration_s or 0.0, medians))
    name, flags = processor_facts()
    has = ", ".join(flag for flag in FLAGS if flag in flags)
    return IngestFigures(
        videos=tuple(videos),
        left_out=left_out,
        rounds=rounds,
        fps=fps,
        machine=f"{len(os.sched_getaffinity(0))} cores of {name} ({has or 'no flags known'})",
        load=(load, os.getloadavg()[0]),
        versions=", ".join(f"{package} {version(package)}" for package in MEASURED_WITH),
    )


def table(figures: IngestFigures) -> str:
    lines = [
        f"{figures.machine}; {figures.versions}",
        f"{figures.fps:g} frames a second; whole processes, the median of {figures.rounds} rounds in turn; "
        f"load {figures.load[0]:.1f} before, {figures.load[1]:.1f} after",
        "",
        "| video | program | seconds | CPU s | memory MB |",
        "|---|---|---:|---:|---:|",
    ]
    for each in figures.videos:
        for program, run in each.runs.items():
            what = f"{each.video}, {each.video_s:,.0f} s, {each.picture}"
            lines.append(f"| {what} | {program} | {run.seconds:.1f} | {run.cpu_s:.1f} | {run.memory_mb:,.0f} |")
    return "\n".join([*lines, *(f"{program} was left out: {why}" for program, why in figures.left_out.items())])


def _round(
    scratch: Path, video: Path, model: Path, fps: float, pythons: Mapping[str, str], left_out: dict[str, str]
) -> Iterator[tuple[str, WholeRun]]:
    """Run each program once on a video; a peer that fails is left out from then on."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        here = Path(folder)
        ingest = [sys.executable, "-c", KINODEX, "ingest", str(video), "--space", f"local-dir:{model}"]
        for program in (FIRST, NEXT):
            command = [*ingest, "--fps", str(fps), "--device", "cpu", "--library", str(here / program)]
            yield program, _run([*command], here)
        for program, python in pythons.items():
            if program in left_out:
                continue
            command = [python, "-c", PEER.format(program), str(model), str(here / program), str(fps), str(video)]
            try:
                yield program, _run(command, here)
            except Lost as error:
                left_out[program] = str(error)


def _run(command: Sequence[str], here: Path) -> WholeRun:
    """Run a program in a folder, with caches of its own there; raises Lost if it fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(here / "cache"),
        "PIXELTABLE_HOME": str(here / "pixeltable"),
    }
    with tempfile.TemporaryFile() as output:
        began, before = time.perf_counter(), _children_cpu_s()
        child = subprocess.Popen(command, cwd=here, env=environment, stdout=output, stderr=output)
        peak, over = [0], threading.Event()

        def look() -> None:
            peak[0] = max(peak[0], sum(map(_proportional_bytes, [child.pid, *_descendants(child.pid)])))

        watch = threading.Thread(target=_every, args=(MEMORY_EVERY_S, over, look))
        watch.start()
        try:
            code = child.wait(RUN_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Lost(f"it took more than {RUN_LIMIT_S:g} s") from error
        finally:
            child.kill()
            child.wait()
            over.set()
            watch.join()
        seconds, cpu_s = time.perf_counter() - began, _children_cpu_s() - before
        output.seek(0)
        said = output.read().decode(errors="replace").strip().splitlines()
    if code:
        raise Lost(f"it ended with status {code}: {said[-1][:200] if said else 'nothing was said'}")
    return WholeRun(seconds, cpu_s, peak[0] / 1e6)


def _environments(
    scratch: Path, peers: Sequence[str], report: Callable[[str], None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Make an environment above this one for each peer; returns their Pythons, and why others have none."""
    pythons, left_out = {SCRIPT: sys.executable}, dict[str, str]()
    for peer in peers:
        report(f"installing {PEERS[peer]} in an environment of its own")
        folder = scratch / f"{peer}-environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        above = [str(ROOT), *(each for each in sys.path if each.endswith("-packages"))]
        (packages / "above.pth").write_text("\n".join(above) + "\n")
        python = str(folder / "bin" / "python")
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", PEERS[peer]]
        try:
            done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S)
        except subprocess.TimeoutExpired:
            left_out[peer] = f"its installation took more than {INSTALL_LIMIT_S:g} s"
            continue
        if done.returncode:
            left_out[peer] = f"it does not install: {(done.stderr.strip().splitlines() or ['no reason'])[-1][:200]}"
            continue
        pythons[peer] = python
    return pythons, left_out


def _median(runs: Sequence[WholeRun]) -> WholeRun:
    seconds, cpu_s, memory_mb = (
        statistics.median(getattr(run, name) for run in runs) for name in ("seconds", "cpu_s", "memory_mb")
    )
    return WholeRun(round(seconds, 2), round(cpu_s, 2), round(memory_mb, 1))


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@dataclass(frozen=True, slots=True)
class WholeIngest:
    """One ingest, from the moment that the model is loaded until its rows are committed.

    `frames` are those that the library holds at the end; `busy` is the part of their time that workers decoded,
    embedded and wrote, 0 to 1; memory in MB is resident, at its peak, and
    `gpu` has averages of GPU_FIGURES.
    """

    films: int
    frames: int
    video_s: float
    seconds: float
    busy: Mapping[str, float]
    arithmetic: str
    fell_back: Mapping[str, int]
    parent_mb: float
    child_mb: float
    gpu: dict[str, float]


def ingest_films(films: Sequence[Path], config: IngestConfig, library: Path) -> WholeIngest:
    from kinodex.index.library import Library
    from kinodex.jobs.ingest.run import run_ingest

    sources = [Source(str(film), film.name) for film in films]
    with measure_usage() as usage:
        report = run_ingest(config.model_copy(update={"text_tower": False}), sources, str(library))
    if bad := [outcome.problem for outcome in report.outcomes if outcome.state == "failed"]:
        raise RuntimeError(f"the ingest that was to be measured failed: {bad[0]}")
    committed = sum(video.frames for video in Library.open(str(library)).videos())
    if committed != report.frames:
        raise RuntimeError(f"the ingest reports {report.frames} frames, and its library holds {committed}")
    return WholeIngest(
        films=len(films),
        frames=committed,
        video_s=report.video_s,
        seconds=report.seconds,
        busy=dict(report.utilisation),
        arithmetic=report.arithmetic,
        fell_back=dict(report.fell_back),
        parent_mb=usage.parent_bytes / 1e6,
        child_mb=usage.child_bytes / 1e6,
        gpu=usage.gpu,
    )


@contextmanager
def warm_processes(count: int) -> Iterator[Executor]:
    context = get_context("spawn")
    all_here = context.Barrier(count + 1)
    with ProcessPoolExecutor(count, context, initializer=_warm, initargs=(all_here,)) as pool:
        started = [pool.submit(int) for _ in range(count)]
        all_here.wait()
        for each in started:
            each.result()
        yield pool


def _warm(all_here: threading.Barrier) -> None:
    from kinodex.pipeline.decoding import pyav_reader  # noqa: F401

    all_here.wait()


# The resources that work uses: memory of its processes, time of the GPU.

MEMORY_EVERY_S, GPU_EVERY_S = 0.2, 1.0
GPU_FIGURES = ("utilization.gpu", "utilization.decoder", "memory.used")
"""As nvidia-smi names them: percent, percent, MiB."""


@dataclass
class ResourceUsage:
    """Peaks of resident memory in bytes, of this process and of its largest descendant; means of GPU_FIGURES."""

    parent_bytes: int = 0
    child_bytes: int = 0
    gpu: dict[str, float] = field(default_factory=dict)


@contextmanager
def measure_usage() -> Iterator[ResourceUsage]:
    usage, over = ResourceUsage(), threading.Event()
    samples: dict[str, list[float]] = defaultdict(list)
    threads = [threading.Thread(target=_every, args=(MEMORY_EVERY_S, over, lambda: _sample_memory(usage)))]
    if shutil.which("nvidia-smi"):
        threads.append(threading.Thread(target=_every, args=(GPU_EVERY_S, over, lambda: _sample_gpu(samples))))
    for thread in threads:
        thread.start()
    try:
        yield usage
    finally:
        over.set()
        for thread in threads:
            thread.join()
        usage.gpu = {name: statistics.mean(values) for name, values in samples.items()}


def _every(seconds: float, over: threading.Event, work: Callable[[], None]) -> None:
    work()
    while not over.wait(seconds):
        work()


def _sample_memory(usage: ResourceUsage) -> None:
    usage.parent_bytes = max(usage.parent_bytes, _resident_bytes(os.getpid()))
    usage.child_bytes = max([usage.child_bytes, *map(_resident_bytes, _descendants(os.getpid()))])


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0  # it has ended meanwhile


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, listing.read_text().split())
        except OSError:
            continue  # a thread that has ended meanwhile
    return children + [each for child in children for each in _descendants(child)]


def _sample_gpu(samples: dict[str, list[float]]) -> None:
    """Add the figures of the busiest GPU, each figure for itself."""
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIGURES)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split(", ") for line in done.stdout.splitlines()] if done.returncode == 0 else []
    for name, column in zip(GPU_FIGURES, zip(*rows, strict=True), strict=False):
        values = [float(value) for value in column if value.replace(".", "").isdigit()]
        if values:
            samples[name].append(max(values))


def main(
    video: Annotated[list[Path], typer.Argument(exists=True, help="The videos, each measured by itself.")],
    model: Annotated[
        Path | None, typer.Option(exists=True, help="Folder of an open_clip model. Default: ViT-B-32, random weights.")
    ] = None,
    fps: FpsOption = 1.0,
    rounds: RoundsOption = 5,
    peers: Annotated[bool, typer.Option("--peers", help="Also Pixeltable and Daft, which it installs apart.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure whole ingests on a CPU, the first on a machine and the next, against a competent script in turn."""
    with tempfile.TemporaryDirectory() as scratch:
        if model is None:
            model = Path(make_random_space(Path(scratch) / "model", "ViT-B-32").removeprefix("local-dir:"))
        paths = [each.absolute() for each in video]
        figures = bench_ingest(paths, model.absolute(), rounds, list(PEERS) if peers else [], fps, tell)
    show(figures, table(figures), json)


if __name__ == "__main__":
    typer.run(main)
