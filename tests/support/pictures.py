"""The pictures of docs/pictures that show pages: `python -m tests.support.pictures docs/pictures`.

The films are drawn, and the question is about one of them; the library whose videos and searches are shown is three
times as long.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.libraries.viewer_library import chromium, served
from tests.support.servers.serve_server import Client, serving
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN

QUESTION = "What appears right after the red shoes in the city?"
OPTIONS = ["a yellow robot", "a black bicycle", "a white drum", "an orange fish"]
FILM = "film-03"
DESK, TALL = {"width": 1280, "height": 860}, {"width": 1280, "height": 1130}
PHONE = {"width": 390, "height": 760}
LOADED = """() => Promise.all([...document.images].filter((each) => each.getBoundingClientRect().top < innerHeight)
  .map((each) => { each.loading = "eager"; return each.decode(); }))"""
"""Waits for every picture that is in sight."""
PLAYED = """new Promise((shown) => {
  const video = document.querySelector("video");
  const isOver = () => video.readyState > 1 && video.currentTime > 0 && video.paused;
  const look = () => (isOver() ? shown() : requestAnimationFrame(look));
  look();
})"""
"""The evidence was played to its end: the picture is always of the same frame."""
SEARCHES = {
    "viewer-search": ("search/text%3Da%2520yellow%2520robot", ".hit img"),
    "viewer-moments": ("moments/text%3Dyellow%2520dogs%2520in%2520a%2520forest%2520at%2520night", ".moment-card img"),
}
AGENTS = ("eea", "vca")
DIFFERENT = 2
"""Of the benchmark's questions, one that only one of the agents gets right."""


def make_library(folder: Path, hours: float, seed: int) -> Path:
    """Draw films into a folder, and make their library there."""
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from tests.world.sketch.films import write_films

    write_films(folder / "films", hours=hours, seed=seed)
    run_ingest(IngestConfig(space=DRAWN), list_sources([str(folder / "films")]), str(folder / "library"))
    return folder / "library"


def take(
    browser: Any, address: str, sign: str, out: Path, *, size: Any = DESK, scheme: str = "light", at: str = ""
) -> None:
    """Open an address, and write its picture once the sign is there, from the top or from the element `at` on."""
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.goto(address)
    page.locator(sign).first.wait_for(state="attached")
    if ".moment" in sign and "/ask/" in address:
        page.locator(sign).first.click()
        page.locator("video").wait_for()
        page.evaluate(PLAYED)
        page.locator("main").focus()
        page.evaluate("scrollTo(0, 0)")
    if at:
        page.locator(at).first.evaluate("each => each.scrollIntoView({ block: 'start' })")
    page.evaluate(LOADED)
    page.screenshot(path=out)
    page.close()


def take_answers(client: Client, browser: Any, out: Path) -> None:
    """The page of a question with its first evidence playing, and its trace, also on a phone."""
    trace, curve = f"{client.address}/#/trace/q1", ".timeline .curve"
    for scheme in ("light", "dark"):
        asked = f"{client.address}/#/ask/0/q1"
        take(browser, asked, ".moment", out / f"ask-{scheme}.png", size=TALL, scheme=scheme)
        take(browser, trace, curve, out / f"viewer-trace-{scheme}.png", size=TALL, scheme=scheme)
    take(browser, trace, curve, out / "viewer-phone.png", size=PHONE, scheme="dark")


def take_library(client: Client, browser: Any, out: Path) -> None:
    """The videos of a library as posters, also on a phone, a search and moments."""
    home = f"{client.address}/#/library/0"
    take(browser, home, ".posters img", out / "viewer-library.png")
    take(browser, home, ".posters img", out / "viewer-library-phone.png", size=PHONE, scheme="dark")
    for name, (where, sign) in SEARCHES.items():
        take(browser, f"{home}/{where}", sign, out / f"{name}.png")


def take_run(address: str, browser: Any, out: Path) -> None:
    """A run: its standings, two answers side by side, and a round of one."""
    one, other = (f"r0-{agent}-{DIFFERENT}" for agent in range(len(AGENTS)))
    take(browser, f"{address}/#/run/0", "table", out / "viewer-run.png", size=TALL)
    take(browser, f"{address}/#/trace/{one},{other}/1,1", ".answer", out / "viewer-side-by-side.png", size=TALL)
    take(browser, f"{address}/#/trace/{one}/1", ".answer", out / "viewer-round.png", size=TALL, at=".round")


def main(out: Path) -> None:
    """Make the libraries and the run, and write all pictures."""
    with tempfile.TemporaryDirectory() as name:
        short, long = Path(name) / "short", Path(name) / "long"
        library, run = make_library(short, 0.1, 1), short / "run"
        chosen = [word for agent in AGENTS for word in ("--agent", agent)]
        given = [library, "--annotations", short / "films", "--out", run, "--traces", *chosen]
        program = "from kinodex.cli.main import main; main()"
        subprocess.run([sys.executable, "-c", program, "eval", "run", SKETCHES, *map(str, given)], check=True)
        with serving([library], short / "traces") as client:
            client.wait(client.ask(QUESTION, options=OPTIONS, videos=[FILM]))
            with chromium() as browser:
                take_answers(client, browser, out)
        with serving([make_library(long, 0.3, 3)], long / "traces") as client, chromium() as browser:
            take_library(client, browser, out)
        with served(run, library) as address, chromium() as browser:
            take_run(address, browser, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
