"""Run the same films through `kinodex ingest --ray` and through Ray Data, undisturbed and under faults.

    nice python -m tests.support.ray_data.comparison FOLDER [--fault none --fault crash ...] [--limit 180] [--retries N]

FOLDER holds films. Each run has a cluster of its own on this machine. Faults: `crash` kills every process that decodes
`crash.mp4` (a copy of a film, put beside the others), `worker` kills one decoding actor and `node` a whole node in the
middle, `driver` kills the driver in the middle and begins it again. A run that does not end within the limit is ended
here. Prints one JSON object a run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers.ray_node import cluster, descendants, environment, ingest, kill, log_of, named, node, vanish

FAULTS = ("none", "crash", "worker", "node", "driver")
SYSTEMS = ("kinodex", "ray data")
CPUS = 6
"""CPUs that Ray believes in: two that decode, one that embeds, one that writes, and two for Ray Data's own tasks, which
waited for ever with four."""
SPOT_CPUS = 6
"""Those of each of the two nodes of which one vanishes, so that all finds a place on the other; their head has none."""
CRASH = "crash.mp4"
MIDDLE_S = 8.0
"""A run is in its middle so long after decoding began."""
LOOK_EVERY_S = 0.05
DECODES = {"kinodex": "sandbox_child", "ray data": r"ray::MapWorker\(MapBatches\(Decode"}
WORKER = {"kinodex": "ray::RayWorker", "ray data": DECODES["ray data"]}


@dataclass
class Observed:
    """One run: seconds until the last driver ended (None: it did not), kills, and the peak of memory in MB.

    Memory is proportional set size, of the driver and all that the cluster runs. `rows` is empty where nothing can be
    read.
    """

    system: str
    fault: str
    seconds: float | None = None
    exit_code: int | None = None
    kills: int = 0
    decoding_there: int = 0
    """Processes that decoded on a node that vanished."""
    peak_mb: float = 0.0
    rows_after_kill: int | None = None
    rows: int = 0
    distinct_rows: int = 0
    log_tail: str = field(default="")


def observe(system: str, fault: str, films: Path, limit_s: float, retries: int | None = None) -> Observed:
    """Run one system under one fault; `retries` is for Ray Data alone."""
    seen = Observed(system, fault)
    with tempfile.TemporaryDirectory(prefix="compare-") as name, ExitStack() as stack:
        out = Path(name) / "out"
        address, head = stack.enter_context(cluster(CPUS if fault != "node" else 0))
        spots: list[int] = []
        for number in range(2 if fault == "node" else 0):  # one after the other: of two at once only one joins
            spots.append(stack.enter_context(node(address, SPOT_CPUS)))
            _wait_for_cpus(address, SPOT_CPUS * (number + 1))
        began, process = time.monotonic(), _begin(system, films, out, address, retries)
        decoding_since, struck = None, False
        while process.poll() is None and time.monotonic() - began < limit_s:
            decoding = [pid for root in (head, *spots) for pid in named(root, DECODES[system]) if _films_of(pid)]
            decoding_since = decoding_since or (time.monotonic() if decoding else None)
            seen.peak_mb = max(seen.peak_mb, _memory_mb([process.pid, head, *spots]))
            if fault == "crash":
                for pid in decoding:
                    if CRASH in _films_of(pid):
                        kill(pid)
                        seen.kills += 1
            elif not struck and decoding_since and time.monotonic() - decoding_since > MIDDLE_S:
                struck = fault != "none"
                if fault == "worker":
                    kill(named(head, WORKER[system])[0])
                if fault == "node":
                    spot = max(spots, key=lambda root: len(named(root, DECODES[system])))
                    seen.decoding_there = len(named(spot, DECODES[system]))
                    vanish(spot)
                if fault == "driver":
                    kill(process.pid)
                    process.wait()
                    seen.rows_after_kill = len(_rows(system, out))
                    began, process = time.monotonic(), _begin(system, films, out, address, retries)
                seen.kills += struck
            time.sleep(LOOK_EVERY_S)
        seen.seconds = round(time.monotonic() - began, 1) if process.poll() is not None else None
        seen.exit_code = process.poll()
        kill(process.pid)
        process.wait()
        rows = _rows(system, out)
        seen.rows, seen.distinct_rows = len(rows), len(set(rows))
        seen.log_tail = " ".join(log_of(out).read_text(errors="replace").split())[-300:]
    return seen


def _begin(system: str, films: Path, out: Path, address: str, retries: int | None) -> subprocess.Popen[bytes]:
    if system == "kinodex":
        return ingest(films, out, address, "--workers", "2", "--embedders", "1", "--no-text-tower")
    command = [sys.executable, "-m", "tests.support.ray_data.dataset_ingest", str(films), str(out)]
    command += ["--retries", str(retries)] if retries is not None else []
    with log_of(out).open("ab") as log:
        return subprocess.Popen([*command, "--address", address], stdout=log, stderr=log, env=environment())


def _wait_for_cpus(address: str, cpus: int) -> None:
    """Wait until a cluster has so many CPUs, as seen from a process of its own."""
    script = f"""
import ray, time
ray.init(address={address!r}, log_to_driver=False)
while ray.cluster_resources().get("CPU", 0) < {cpus}:
    time.sleep(0.2)
"""
    subprocess.run([sys.executable, "-c", script], env=environment(), check=True, capture_output=True, timeout=120)


def _rows(system: str, out: Path) -> list[str]:
    """List the rows that a reader finds, as VIDEO:NUMBER."""
    if system == "kinodex":
        from kinodex.index.library import Library

        if not Library.exists(str(out)):
            return []
        library = Library.open(str(out))
        ids = sorted(library.video_ids())
        return [f"{video_id}:{number}" for video_id in ids for number in library.vectors(video_id).frame_no.tolist()]
    import lance

    if not (out / "_versions").exists():
        return []
    rows: list[str] = lance.dataset(str(out)).to_table(columns=["row"])["row"].to_pylist()
    return rows


def _films_of(pid: int) -> set[str]:
    """List the names of the films that a process has open."""
    names = set()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = link.readlink()
            if target.suffix == ".mp4":
                names.add(target.name)
    except OSError:
        return names  # the process or the file is gone
    return names


def _memory_mb(roots: list[int]) -> float:
    total_kb = 0
    for pid in {*roots, *(each for root in roots for each in descendants(root))}:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return round(total_kb / 1000, 0)


@contextmanager
def _with_crash(folder: Path) -> Iterator[Path]:
    """Provide the films with one more, which crashes."""
    with tempfile.TemporaryDirectory(prefix="films-") as name:
        for film in sorted(folder.glob("*.mp4")):
            (Path(name) / film.name).symlink_to(film.resolve())
        first = sorted(folder.glob("*.mp4"))[0]
        shutil.copy(first, Path(name) / CRASH)
        with (Path(name) / CRASH).open("ab") as file:
            file.write(struct.pack(">I4sI", 12, b"free", 999))
        yield Path(name)


def main(show: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--system", action="append", choices=SYSTEMS)
    parser.add_argument("--limit", type=float, default=180.0)
    parser.add_argument("--retries", type=int)
    given = parser.parse_args()
    for fault in given.fault or FAULTS:
        for system in given.system or SYSTEMS:
            with ExitStack() as stack:
                films = stack.enter_context(_with_crash(given.folder)) if fault == "crash" else given.folder
                show(json.dumps(vars(observe(system, fault, films, given.limit, given.retries))))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
