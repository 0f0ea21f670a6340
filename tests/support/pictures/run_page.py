"""Pictures of a run in the viewer: its standings, two agents side by side, and a round of one.

    python -m tests.support.pictures.run_page docs/pictures

The films and their questions are those of `make demo`; the built-in model answers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.libraries.viewer_library import chromium, served
from tests.support.pictures.ask_page import make_library
from tests.support.pictures.library_page import LOADED

AGENTS = ("eea", "vca")
QUESTION = 2
"""Of the benchmark's questions, one that only one of them gets right."""
SIZE = {"width": 1280, "height": 1130}


def make_run(folder: Path, library: Path) -> Path:
    """Have both agents answer all questions, and keep their traces."""
    agents = [word for agent in AGENTS for word in ("--agent", agent)]
    arguments = ["sketch", library, "--annotations", folder / "films", "--out", folder / "run", *agents, "--traces"]
    program = "from kinodex.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", program, "eval", "run", *map(str, arguments)], check=True)
    return folder / "run"


def take(browser: Any, address: str, sign: str, out: Path, below: str = "") -> None:
    """Open an address and write its picture from the top, or from the element `below` on."""
    page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    page.wait_for_selector(sign)
    if below:
        page.locator(below).first.evaluate("each => each.scrollIntoView({ block: 'start' })")
    page.evaluate(LOADED)
    page.screenshot(path=out)
    page.close()


def main(out: Path) -> None:
    """Make the library and the run, and write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        library = make_library(Path(folder))
        run = make_run(Path(folder), library)
        with served(run, library) as address, chromium() as browser:
            one, other = (f"r0-{agent}-{QUESTION}" for agent in range(len(AGENTS)))
            take(browser, f"{address}/#/run/0", "table", out / "viewer-run.png")
            take(browser, f"{address}/#/trace/{one},{other}/1,1", ".answer", out / "viewer-side-by-side.png")
            take(browser, f"{address}/#/trace/{one}/1", ".answer", out / "viewer-round.png", ".round")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
