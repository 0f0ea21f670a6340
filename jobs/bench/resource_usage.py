"""Run work in a fresh process, and measure the resources that it uses: memory of its processes, time of the GPU."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

MEMORY_EVERY_S, GPU_EVERY_S = 0.2, 1.0
GPU_FIGURES = ("utilization.gpu", "utilization.decoder", "memory.used")
"""As nvidia-smi names them: percent, percent, MiB."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class ResourceUsage:
    """Peaks of resident memory in bytes, of this process and of its largest descendant; means of GPU_FIGURES."""

    parent_bytes: int = 0
    child_bytes: int = 0
    gpu: dict[str, float] = field(default_factory=dict)


class Lost(Exception):
    """A process that returned no result: it ended by itself, or took too long."""


def run_alone(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a fresh process, so that nothing which ran before helps or hinders it, and return its result.

    Raises what `work` raises, and Lost.
    """
    return run_alone_within(None, work, *args, **kwargs)


def run_alone_within(limit_s: float | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` as `run_alone` does, and end it after `limit_s` seconds."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, work, args, kwargs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            raise Lost(f"it took more than {limit_s:g} s")
        result: T | Exception = ours.recv()
    except EOFError as error:
        process.join()
        raise Lost(f"its process ended with status {process.exitcode}") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(result, Exception):
        raise result
    return result


def _send_result(pipe: Connection, work: Callable[..., object], args: Any, kwargs: Any) -> None:
    try:
        pipe.send(work(*args, **kwargs))
    except Exception as error:  # whatever it is, it is raised where the result is waited for
        pipe.send(error)


@contextmanager
def measure_usage() -> Iterator[ResourceUsage]:
    """Measure the usage of a block, complete when it is left; of the GPU by nvidia-smi, where there is one."""
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
