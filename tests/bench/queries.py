"""Measure searches from Python and of `kinodex serve`: `python -m tests.bench.queries`.

Clients of the server are one process that does little else. Beside the time on the wall stands the CPU time of the
process that is measured: on a shared machine that alone can be compared.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Process
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote

import numpy as np
import typer

from tests.world.drawn_space import DRAWN

ROOT = Path(__file__).parents[2]
HOURS, SEED = 0.1, 3
"""Six minutes: 360 frames at one a second."""
SEARCHES_BUSY = 41
RUN = "from kinodex.cli.main import main; main()"
COLOURS = ("red", "green", "blue", "white", "black", "orange", "purple", "pink")
THINGS = ("boat", "kite", "house", "tree", "car", "dog", "anchor", "balloon", "cat", "drum")
TICKS = os.sysconf("SC_CLK_TCK")


class Row(NamedTuple):
    """Searches of one kind: how long one takes, how many a second, and CPU time of one."""

    what: str
    p50_ms: float
    p95_ms: float
    a_second: float
    cpu_ms: float


def words(number: int) -> str:
    """Words that no other number has."""
    return f"a {COLOURS[number % 8]} {THINGS[number // 8 % 10]} beside a {THINGS[number // 80 % 10]} {number}"


def prepare(directory: Path, space: str) -> str:
    """Make a library of short films in a space, where missing; returns its place."""
    place = directory / f"library-{re.sub(r'[^A-Za-z0-9]+', '-', space)}"
    if not place.is_dir():
        films = directory / "films"
        if not films.is_dir():
            kinodex("sample", str(films), "--hours", str(HOURS), "--seed", str(SEED), "--form", "independent")
        fps = "1" if space == DRAWN else "0.25"  # of a large tower it is the words that cost
        kinodex("ingest", str(films), "--library", str(place), "--space", space, "--fps", fps)
    return str(place)


def kinodex(*arguments: str) -> None:
    subprocess.run([sys.executable, "-c", RUN, *arguments], check=True, stdout=sys.stderr)


def frames_of(place: str) -> int:
    import kinodex

    return kinodex.open(place).info().frames


def in_python(place: str, count: int) -> list[Row]:
    """Searches of an open library, one after the other."""
    import kinodex

    library = kinodex.open(place)
    rows = [one_by_one("Python, the first search", lambda _: library.search(words(0)), 1)]
    rows.append(one_by_one("Python, the same words", lambda _: library.search(words(0)), count))
    rows.append(one_by_one("Python, new words", lambda number: library.search(words(1 + number)), count))
    with busy():
        title = f"Python, new words, beside {2 * (os.cpu_count() or 1)} busy processes"
        rows.append(one_by_one(title, lambda number: library.search(words(5000 + number)), SEARCHES_BUSY))
    return rows


def one_by_one(what: str, search: Callable[[int], object], count: int) -> Row:
    began, cpu_s, seconds = time.perf_counter(), time.process_time(), []
    for number in range(count):
        at = time.perf_counter()
        search(number)
        seconds.append(time.perf_counter() - at)
    return row(what, seconds, time.perf_counter() - began, time.process_time() - cpu_s)


def row(what: str, seconds: list[float], wall_s: float, cpu_s: float) -> Row:
    p50_ms, p95_ms = 1000 * np.quantile(seconds, [0.5, 0.95])
    return Row(what, float(p50_ms), float(p95_ms), len(seconds) / wall_s, 1000 * cpu_s / len(seconds))


@contextmanager
def busy() -> Iterator[None]:
    """Keep every core twice busy within the block."""
    others = [Process(target=spin, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for each in others:
        each.start()
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.join()


def spin() -> None:
    while True:
        pass


def by_server(place: str, clients: int, count: int) -> list[Row]:
    """Searches of a server by clients that each ask again once they are answered."""
    rows = []
    with served(place) as (port, pid):
        for what, new in (("the same words", False), ("new words", True)):
            asyncio.run(ask(port, [words(0)] * 4, clients))  # connections, and the tower
            texts = [words(10_000 * clients + number) if new else words(number % 8) for number in range(count)]
            cpu_s, began = cpu_seconds(pid), time.perf_counter()
            seconds = asyncio.run(ask(port, texts, clients))
            wall_s = time.perf_counter() - began
            rows.append(row(f"serve, {clients} clients, {what}", seconds, wall_s, cpu_seconds(pid) - cpu_s))
    return rows


@contextmanager
def served(place: str) -> Iterator[tuple[int, int]]:
    """Run `kinodex serve`; gives its port and its process."""
    command = [sys.executable, "-c", RUN, "serve", place, "--port", "0", "--no-browser"]
    log = Path(place).with_name("serve.log")
    with log.open("w") as written:
        server = subprocess.Popen(command, stderr=written, stdout=subprocess.DEVNULL)
    try:
        while not (found := re.search(r"http://\S+?:(\d+)/", log.read_text())):
            if server.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        yield int(found[1]), server.pid
    finally:
        server.terminate()
        server.wait()


async def ask(port: int, texts: list[str], clients: int) -> list[float]:
    """Put texts to the server, this many at once; returns the seconds of each."""
    waiting, seconds = iter(texts), list[float]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for text in waiting:
            began = time.perf_counter()
            request = f"GET /data/libraries/0/search?text={quote(text)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head:
                raise SystemExit(head.decode())
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            seconds.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return seconds


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for films and libraries; existing ones are used.")],
    space: Annotated[list[str] | None, typer.Option(help="Space of a library to search; may be repeated.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Searches of each kind.")] = 600,
) -> None:
    """Measure searches of a small library: from Python, and of a server by 1 and 32 clients."""
    directory = directory.absolute()
    for each in space or [DRAWN]:
        place = prepare(directory, each)
        load = os.getloadavg()[0]
        rows = [*in_python(place, min(count, 100)), *by_server(place, 1, count // 4), *by_server(place, 32, count)]
        name, frames = "drawn films" if each == DRAWN else each.rpartition("/")[2], frames_of(place)
        print(f"{name}, {frames} frames, {os.cpu_count()} cores, load {load:.1f} to {os.getloadavg()[0]:.1f}\n")
        print("| searches | p50 ms | p95 ms | a second | CPU ms each |\n|---|---|---|---|---|")
        for found in rows:
            print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |".format(*found))
        print()


if __name__ == "__main__":
    typer.run(main)
