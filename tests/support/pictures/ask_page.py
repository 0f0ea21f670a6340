"""Pictures of the ask page with an answer and its evidence playing, and of its trace, in light and dark.

    python -m tests.support.pictures.ask_page docs/pictures

The films, the question and the built-in model are those of `make demo`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.libraries.viewer_library import chromium
from tests.support.servers.serve_server import Client, serving

QUESTION = "What appears right after the red shoes in the city?"
OPTIONS = ["a yellow robot", "a black bicycle", "a white drum", "an orange fish"]
FILM = "film-03"
SIZE = {"width": 1280, "height": 1130}
TRACE_SIZE = {"width": 1280, "height": 1193}
PHONE = {"width": 390, "height": 844}
PLAYED = """new Promise((shown) => {
  const video = document.querySelector("video");
  const isOver = () => video.readyState > 1 && video.currentTime > 0 && video.paused;
  const look = () => (isOver() ? shown() : requestAnimationFrame(look));
  look();
})"""
"""The evidence was played to its end: the picture is always of the same frame."""


def make_library(folder: Path) -> Path:
    """The films of `make demo` and their library."""
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from kinodex.sketch.sample import sample

    sample(folder / "films", hours=0.1, seed=1)
    run_ingest(IngestConfig(space="builtin"), list_sources([str(folder / "films")]), str(folder / "library"))
    return folder / "library"


def take(client: Client, browser: Any, scheme: str, out: Path) -> None:
    """Open the page of the question, play its first evidence, and write the picture."""
    page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page.goto(f"{client.address}/#/ask/0/q1")
    page.locator(".timeline .curve").wait_for(state="attached")
    page.locator(".moment").first.click()
    page.locator("video").wait_for()
    page.evaluate(PLAYED)
    page.locator("main").focus()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=out / f"ask-{scheme}.png")
    page.close()


def take_trace(client: Client, browser: Any, scheme: str, out: Path) -> None:
    """Write the picture of the whole trace, and in dark the one on a phone."""
    page = browser.new_page(viewport=TRACE_SIZE, color_scheme=scheme)
    page.goto(f"{client.address}/#/trace/q1")
    page.locator(".timeline .curve").wait_for(state="attached")
    page.locator(".evidence img").first.evaluate("image => image.decode()")
    page.screenshot(path=out / f"viewer-trace-{scheme}.png")
    if scheme == "dark":
        page.set_viewport_size(PHONE)
        page.screenshot(path=out / "viewer-phone.png")
    page.close()


def main(out: Path) -> None:
    """Make the library, ask, and write both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        library = make_library(Path(folder))
        with serving([library], Path(folder) / "traces") as client:
            client.wait(client.ask(QUESTION, options=OPTIONS, videos=[FILM]))
            with chromium() as browser:
                for scheme in ("light", "dark"):
                    take(client, browser, scheme, out)
                    take_trace(client, browser, scheme, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
