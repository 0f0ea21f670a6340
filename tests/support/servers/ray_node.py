"""A Ray cluster of one node in processes of its own, its actors' processes, and ingests as commands beside it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.loopback import free_port
from tests.world.drawn_space import DRAWN

RAY = Path(sys.executable).with_name("ray")
WITHOUT = ("--include-log-monitor=false",)
"""A process that sends the words of workers to drivers, which ours do not show; it takes seconds of a processor."""


class RayCluster(NamedTuple):
    """A running cluster: its address, and the first process of its head."""

    address: str
    head: int


@contextmanager
def cluster(cpus: int) -> Iterator[RayCluster]:
    """Start a cluster; it is taken down at the end."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:  # sockets: a short path
        log = Path(folder) / "log"
        command = [str(RAY), "start", "--head", "--block", f"--port={port}", f"--num-cpus={cpus}"]
        command += [f"--temp-dir={folder}", "--include-dashboard=false", "--object-store-memory=200000000", *WITHOUT]
        command += ["--no-monitor"]
        with log.open("wb") as words:
            head = subprocess.Popen(command, env=environment(), stdout=words, stderr=words, start_new_session=True)
        try:
            _wait_for(port, head, log)
            yield RayCluster(f"127.0.0.1:{port}", head.pid)
        finally:
            vanish(head.pid)
            head.wait()


@contextmanager
def node(address: str, cpus: int) -> Iterator[int]:
    """The first process of another node of a cluster, on this machine; `vanish` takes it down in the middle."""
    command = [str(RAY), "start", f"--address={address}", "--block", f"--num-cpus={cpus}"]
    command += ["--object-store-memory=100000000", *WITHOUT]
    quiet = subprocess.DEVNULL
    joined = subprocess.Popen(command, env=environment(), stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield joined.pid
    finally:
        vanish(joined.pid)
        joined.wait()


def vanish(root: int) -> None:
    """Kill a node's processes all at once, as a spot machine's end does."""
    for pid in [*descendants(root), root]:
        kill(pid)


def ingest(corpus: Path, library: Path, address: str | None, *options: str) -> subprocess.Popen[bytes]:
    """`kinodex ingest` with the drawn space, begun; what it says goes to a log beside the library."""
    ray = ["--ray-address", address] if address else []
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", "ingest", str(corpus)]
    command += ["--library", str(library), "--space", DRAWN, *ray, *options]
    with log_of(library).open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())


def log_of(library: Path) -> Path:
    return library.with_suffix(".log")


def environment() -> dict[str, str]:
    """The environment of this process; both sides of a cluster that lives for one test do without a token."""
    return {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}


def named(root: int, pattern: str) -> list[int]:
    """Processes below `root` of which the command line matches."""
    return [pid for pid in descendants(root) if re.search(pattern, _command_line(pid))]


def descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it ended meanwhile
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def kill(pid: int) -> None:
    """SIGKILL, as a spot node's end or an out-of-memory killer does it."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Within this block these processes do nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _wait_for(port: int, head: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the cluster runs, however long it takes, or its first process has ended."""
    while "Ray runtime started" not in log.read_text(errors="replace"):
        if head.poll() is not None:
            raise RuntimeError(f"no cluster at port {port}: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
