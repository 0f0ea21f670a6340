"""Measure the page of a film of hours in Chromium: `python -m tests.support.measure_video_page FOLDER [FRAMES]`.

Two films are made up in FOLDER (`tests.bench.page`), one frame a second: one with shots, lines and detections,
and one with speakers, text on screen, captions and chapters too. Prints of both, in turn, the bytes of the data, the
time until the page and its time line are drawn, and the times between animation frames while the wheel scrolls, zooms
and the arrow keys step. Headless Chromium draws without a GPU, so a real browser is not slower.
"""

from __future__ import annotations

import sys
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from kinodex.bench.search import video_id
from kinodex.web.inputs import video_view
from tests.bench.page import make_long_film
from tests.support.libraries.viewer_library import chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

    from kinodex.index.library import Library

FRAMES, ROUNDS, STEPS = 10_000, 3, 120
WATCH = """() => {
  window.gaps = [];
  window.busy = [];
  new PerformanceObserver((list) => list.getEntries().forEach((each) => window.busy.push(each.duration)))
    .observe({ type: "longtask" });
  let before = null;
  const look = (now) => {
    if (before !== null) window.gaps.push(now - before);
    before = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
DRAWN = """() => new Promise((done) => {
  const look = () => {
    const slider = document.querySelector(".track");
    const canvas = document.querySelector(".track canvas");
    if (slider?.hasAttribute("aria-valuenow") && canvas.width > 300) done(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""
TAKEN = "() => { const taken = [gaps, busy]; window.gaps = []; window.busy = []; return taken; }"
SCROLL = {
    "wheel scrolls, zoomed in": ("scroll", 0, 240),
    "wheel zooms": ("zoom", 0, 30),
    "arrow keys": ("keys", 0, 0),
}


def main(folder: str, frames: int = FRAMES) -> None:
    """Make the films if they are not there, and print the figures of both."""
    plain = make_long_film(str(Path(folder) / f"film-{frames}"), frames)
    annotated = make_long_film(str(Path(folder) / f"film-{frames}-annotated"), frames, is_annotated=True)
    films = {"plain": plain, "annotated": annotated}
    with served(plain.uri, annotated.uri) as address, chromium() as browser:
        places = {name: f"{address}/#/library/{at}/video/{video_id(0)}/{frames // 2}" for at, name in enumerate(films)}
        for at, (name, film) in enumerate(films.items()):
            size = len(urllib.request.urlopen(f"{address}/data/libraries/{at}/videos/{video_id(0)}").read())
            spent_ms = median(_viewed_ms(film) for _ in range(ROUNDS))
            print(f"{name}: {size / 1e6:.2f} MB of JSON, {spent_ms:.0f} ms of CPU in the server (median of {ROUNDS})")
        opened = [(name, _opened_ms(browser, place)) for _ in range(ROUNDS) for name, place in places.items()]
        for name in films:
            drawn, painted, worked = (
                median(times) for times in zip(*[ms for of, ms in opened if of == name], strict=True)
            )
            print(
                f"{name}: first paint {painted:.0f} ms, time line drawn {drawn:.0f} ms, {worked:.0f} ms of CPU in the "
                f"page (medians of {ROUNDS})"
            )
        for _ in range(ROUNDS):
            for name, place in places.items():
                _move(browser, name, place)


def _viewed_ms(film: Library) -> float:
    """CPU of the server for the data of the page."""
    began = time.process_time()
    video_view(film, video_id(0))
    return 1000 * (time.process_time() - began)


def _opened_ms(browser: Browser, place: str) -> tuple[float, float, float]:
    """Time until the time line of a page is drawn, until its first paint, and CPU of its main thread."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(place)
    drawn: float = page.evaluate(DRAWN)
    painted: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    worked = _worked_ms(session)
    page.close()
    return drawn, painted, worked


def _move(browser: Browser, name: str, place: str) -> None:
    """Print the times between animation frames, and the CPU of each, while the page is scrolled, zoomed and stepped."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(place)
    page.evaluate(DRAWN)
    page.evaluate(WATCH)
    for what, (act, dx, dy) in SCROLL.items():
        before_ms = _worked_ms(session)
        _act(page, act, dx, dy)
        worked_ms = _worked_ms(session) - before_ms
        gaps, busy = page.evaluate(TAKEN)
        gaps.sort()
        at = {part: gaps[int(part * (len(gaps) - 1))] for part in (0.5, 0.95, 0.99)}
        print(
            f"{name}, {what}: {len(gaps)} frames, {at[0.5]:.1f} / {at[0.95]:.1f} / {at[0.99]:.1f} ms (median / 95% / "
            f"99%), {sum(gap > 50 for gap in gaps)} above 50 ms, {worked_ms / len(gaps):.2f} ms of CPU a frame, tasks "
            f"above 50 ms: {[round(each) for each in busy]}"
        )
    page.close()


def _worked_ms(session: CDPSession) -> float:
    measured = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(measured["TaskDuration"])


def _act(page: Page, act: str, dx: int, dy: int) -> None:
    place = page.locator(".track").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 40)
    if act == "scroll":
        for _ in range(7):
            page.keyboard.press("+")
    page.evaluate(TAKEN)
    for step in range(STEPS):
        if act == "keys":
            page.keyboard.press("ArrowRight")
            continue
        if act == "zoom":
            page.keyboard.down("Control")
        page.mouse.wheel(dx, dy if act == "scroll" or step < STEPS / 2 else -dy)
        if act == "zoom":
            page.keyboard.up("Control")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
