"""The pictures of docs/pictures that show pages: `python -m tests.support.pictures docs/pictures`.

The films are those of `kinodex demo`, made of photographs that may be shown (NOTICE.md beside them), and one of all
their shots, about which questions are asked. `similarity` answers: no language model is needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kinodex.demo.films import SHOT_S, Shot, shots, write_films
from tests.support.libraries.viewer_library import chromium, served
from tests.support.servers.serve_server import Client, serving

ASKED, DIFFERENT = "pagoda", "fig"
"""Photographs: the question about one is asked, that about the other only one of the agents gets right."""
FILM = "a year"
DESK, TALL = {"width": 1280, "height": 860}, {"width": 1280, "height": 1130}
PHONE = {"width": 390, "height": 900}
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
    "viewer-search": ("search/text%3Da%2520flower", ".hit img"),
    "viewer-moments": ("moments/text%3Da%2520sunset%2520over%2520hills", ".moment-card img"),
}
AGENTS = ("eea", "vca")


def make_library(folder: Path) -> Path:
    """Write the films into a folder, with the one of all their shots, and make their library there."""
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    paths = write_films(folder / "films")
    (folder / "parts.txt").write_text("".join(f"file '{each}'\n" for each in paths))
    joined = ["-f", "concat", "-safe", "0", "-i", folder / "parts.txt", "-c", "copy", folder / "films" / f"{FILM}.mp4"]
    subprocess.run(["ffmpeg", "-v", "error", *map(str, joined)], check=True)
    run_ingest(IngestConfig(space="photo"), list_sources([str(folder / "films")]), str(folder / "library"))
    return folder / "library"


def write_questions(file: Path) -> None:
    """Write the questions of all shots, about the one film of them, as `kinodex eval own` reads them."""
    rows = [question(at, shot) for at, shot in enumerate(shots().values())]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def question(at: int, shot: Shot) -> dict[str, Any]:
    """Return the question about the shot that comes at this place in the film."""
    seen_s = [at * SHOT_S, (at + 1) * SHOT_S]
    asked = {"id": shot.photograph, "video": FILM, "question": shot.question, "options": shot.options}
    return {**asked, "answer": shot.answer, "evidence": [seen_s]}


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
    one, other = (f"r0-{agent}-{[*shots()].index(DIFFERENT)}" for agent in range(len(AGENTS)))
    take(browser, f"{address}/#/run/0", "table", out / "viewer-run.png", size=TALL)
    take(browser, f"{address}/#/trace/{one},{other}/1,1", ".answer", out / "viewer-side-by-side.png", size=TALL)
    take(browser, f"{address}/#/trace/{one}/1", ".answer", out / "viewer-round.png", size=TALL, at=".round")


def main(out: Path) -> None:
    """Make the library and the run, and write all pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library, run = make_library(folder), folder / "run"
        write_questions(folder / "questions.jsonl")
        chosen = [word for agent in AGENTS for word in ("--agent", agent)]
        given = ["own", library, "--annotations", folder / "questions.jsonl", "--out", run, "--traces", *chosen]
        program = "from kinodex.cli.main import main; main()"
        subprocess.run([sys.executable, "-c", program, "eval", "run", *map(str, given)], check=True)
        asked = shots()[ASKED]
        with serving([library], folder / "traces") as client:
            client.wait(client.ask(asked.question, options=asked.options, videos=[FILM], agent=AGENTS[0]))
            with chromium() as browser:
                take_answers(client, browser, out)
                take_library(client, browser, out)
        with served(run, library) as address, chromium() as browser:
            take_run(address, browser, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
