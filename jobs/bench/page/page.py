"""Measure how soon the page of a library of many videos is there: the server's replies, and Chromium's first paint."""

from __future__ import annotations

import shutil
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.bench.page.made_up import make_page_library
from jobs.errors import UsageError

POSTERS = 100
PATHS = ("home", "libraries/0", "libraries/0/videos", "libraries/0/videos?words=harbour+winter")
ENGINE = """() => new Promise((done) => {
  const shown = () => {
    const first = performance.getEntriesByName("first-contentful-paint")[0];
    const cards = document.querySelectorAll(".posters li a").length;
    if (first && cards) requestAnimationFrame(() => done([first.startTime, performance.now()]));
    else setTimeout(shown, 5);
  };
  shown();
})"""
"""Times in milliseconds since the address was opened: the first text on the page, and the posters' cards drawn."""


@dataclass(frozen=True, slots=True)
class PageFigures:
    """Times in milliseconds: of the server's replies (first and warm), of a poster, and of the page in a browser."""

    videos: int
    replies: dict[str, tuple[float, float]]
    poster_cpu: float
    poster_again: float
    first_paint: float | None
    grid: float | None


def bench_page(directory: Path, videos: int, rounds: int, tell: Callable[[str], None]) -> PageFigures:
    """Make the library if it is missing, and measure; without a Chromium the browser's figures are None."""
    library = make_page_library(str(directory), videos, lambda done: tell(f"{done} of {videos} videos written"))
    with server(library.uri) as address:
        replies = {path: _replies(f"{address}/data/{path}", rounds) for path in PATHS}
        ids = [row.video_id for row in library.videos()[:POSTERS]]
        first, again = (_cpu_of([f"{address}/posters/0/{each}" for each in ids]) for _ in range(2))
        paint = _paint(address, rounds)
    return PageFigures(videos, replies, first, again, *paint)


def table(figures: PageFigures) -> str:
    """Write the figures as lines."""
    lines = [f"{path:42} {first:6.0f} ms first {warm:6.1f} ms warm" for path, (first, warm) in figures.replies.items()]
    browser = "no Chromium here" if figures.first_paint is None else f"{figures.first_paint:.0f} ms"
    grid = "" if figures.grid is None else f", its posters' cards {figures.grid:.0f} ms"
    return "\n".join(
        [
            f"a library of {figures.videos:,} videos",
            *lines,
            f"a poster: {figures.poster_cpu:.1f} ms of CPU the first time, {figures.poster_again:.1f} ms again",
            f"in a browser, median: first paint {browser}{grid}",
        ]
    )


@contextmanager
def server(uri: str) -> Iterator[str]:
    """Run the viewer's server on loopback in a thread; gives its address."""
    from jobs.server_socket import LOOPBACK, serve_in_thread
    from jobs.viewer.api import ViewerApi
    from jobs.viewer.inputs import classify_inputs
    from jobs.viewer.server import make_app

    app = make_app(ViewerApi(classify_inputs([uri])), list(LOOPBACK))
    with serve_in_thread(app, socket.create_server(("127.0.0.1", 0))) as address:
        yield address


def _replies(address: str, rounds: int) -> tuple[float, float]:
    """Milliseconds of the first reply, and of the median of the next ones."""
    times_ms = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        _get(address)
        times_ms.append(1e3 * (time.perf_counter() - began))
    return times_ms[0], statistics.median(times_ms[1:])


def _cpu_of(addresses: Sequence[str]) -> float:
    """Milliseconds of this process's CPU an address."""
    began = time.process_time()
    for address in addresses:
        _get(address)
    return 1e3 * (time.process_time() - began) / len(addresses)


def _get(address: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(address) as reply:
        content: bytes = reply.read()
        return content


def _paint(address: str, rounds: int) -> tuple[float | None, float | None]:
    """Medians of the first paint and of the grid in a fresh headless Chromium page, in milliseconds."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        return None, None
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise UsageError("the browser's figures need playwright; `pip install playwright` brings it") from error
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        times_ms = []
        for _ in range(rounds):
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.goto(f"{address}/#/library/0", wait_until="commit")
            times_ms.append(page.evaluate(ENGINE))
            page.context.close()
        browser.close()
    return statistics.median(paint for paint, _ in times_ms), statistics.median(grid for _, grid in times_ms)
