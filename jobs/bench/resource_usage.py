"""What a piece of work takes of the machine while it runs: memory of its processes, and the GPU's time."""

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
class Load:
    """Peaks of resident memory in bytes, of this process and of its largest descendant; means of GPU_FIGURES."""

    parent_bytes: int = 0
    child_bytes: int = 0
    gpu: dict[str, float] = field(default_factory=dict)


class Lost(Exception):
    """A process that gave no result: it ended by itself, or took too long."""


def alone(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns, run in a fresh process, so that nothing which ran before helps or hinders it.

    Raises what `work` raises, and Lost.
    """
    return alone_within(None, work, *args, **kwargs)


def alone_within(limit_s: float | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same, ended after `limit_s` seconds."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, work, args, kwargs))
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


def _answer(pipe: Connection, work: Callable[..., object], args: Any, kwargs: Any) -> None:
    try:
        pipe.send(work(*args, **kwargs))
    except Exception as error:  # whatever it is, it is raised where the answer is waited for
        pipe.send(error)


@contextmanager
def watched() -> Iterator[Load]:
    """Give a Load that is complete when the block is left. The GPU's is read from nvidia-smi, where there is one."""
    load, over = Load(), threading.Event()
    samples: dict[str, list[float]] = defaultdict(list)
    threads = [threading.Thread(target=_every, args=(MEMORY_EVERY_S, over, lambda: _look_at_memory(load)))]
    if shutil.which("nvidia-smi"):
        threads.append(threading.Thread(target=_every, args=(GPU_EVERY_S, over, lambda: _look_at_gpu(samples))))
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        over.set()
        for thread in threads:
            thread.join()
        load.gpu = {name: statistics.mean(values) for name, values in samples.items()}


def _every(seconds: float, over: threading.Event, look: Callable[[], None]) -> None:
    look()
    while not over.wait(seconds):
        look()


def _look_at_memory(load: Load) -> None:
    load.parent_bytes = max(load.parent_bytes, _resident_bytes(os.getpid()))
    load.child_bytes = max([load.child_bytes, *map(_resident_bytes, _descendants(os.getpid()))])


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


def _look_at_gpu(samples: dict[str, list[float]]) -> None:
    """Busiest of the GPUs, by each figure."""
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIGURES)}", "--format=csv,noheader,nounits"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split(", ") for line in said.stdout.splitlines()] if said.returncode == 0 else []
    for name, column in zip(GPU_FIGURES, zip(*rows, strict=True), strict=False):
        values = [float(value) for value in column if value.replace(".", "").isdigit()]
        if values:
            samples[name].append(max(values))
