"""Measure the page of a film of hours in Chromium: `python -m tests.support.measure_video_page FOLDER [FRAMES]`.

A film is made up in FOLDER (`jobs.bench.page.long_film`), one frame a second. Prints the bytes of its data, the time
until the page and its time line are drawn, and the times between animation frames while the wheel scrolls, zooms and
the arrow keys step. Headless Chromium draws without a GPU, so a real browser is not slower.
"""

from __future__ import annotations

import sys
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from jobs.bench.page.long_film import make_long_film
from jobs.bench.synthetic_library import video_id
from jobs.viewer.video_view import video_view
from tests.support.libraries.viewer_library import chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

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
    """Make the film if it is not there, and print the figures."""
    film = make_long_film(str(Path(folder) / f"film-{frames}"), frames)
    name = video_id(0)
    with served(film.uri) as address, chromium() as browser:
        size = len(urllib.request.urlopen(f"{address}/data/libraries/0/videos/{name}").read())
        print(f"{frames} frames, {film.video(name).segments} shots: {size / 1e6:.2f} MB of JSON")
        drawn, painted, worked = [], [], []
        for _ in range(ROUNDS):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            page.goto(f"{address}/#/library/0/video/{name}/{frames // 2}")
            drawn.append(page.evaluate(DRAWN))
            painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"))
            worked.append(_worked_ms(session))
            page.close()
        print(
            f"first paint {median(painted):.0f} ms, time line drawn {median(drawn):.0f} ms, "
            f"{median(worked):.0f} ms of work in the page (medians of {ROUNDS})"
        )
        began = time.process_time()
        video_view(film, name)
        print(f"the data of the page: {1000 * (time.process_time() - began):.0f} ms of CPU in the server")
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{address}/#/library/0/video/{name}/{frames // 2}")
        page.evaluate(DRAWN)
        page.evaluate(WATCH)
        for what, (act, dx, dy) in SCROLL.items():
            _act(page, act, dx, dy)
            gaps, busy = page.evaluate(TAKEN)
            gaps.sort()
            at = {part: gaps[int(part * (len(gaps) - 1))] for part in (0.5, 0.95, 0.99)}
            print(
                f"{what}: {len(gaps)} frames, {at[0.5]:.1f} / {at[0.95]:.1f} / {at[0.99]:.1f} ms (median / 95% / 99%), "
                f"{sum(gap > 50 for gap in gaps)} above 50 ms, tasks above 50 ms: {[round(each) for each in busy]}"
            )
        page.goto("about:blank")


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
