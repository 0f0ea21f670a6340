"""Pictures of a library: its videos as posters, a search, moments, and the first page on a phone.

    python -m tests.support.pictures.library_page docs/pictures

The films are drawn as those of `make demo`, three times as long, and searched in the built-in space.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.libraries.viewer_library import chromium
from tests.support.servers.serve_server import serving

HOURS, SEED = 0.3, 3
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 760}
LOADED = """() => Promise.all([...document.images].filter((each) => each.getBoundingClientRect().top < innerHeight)
  .map((each) => { each.loading = "eager"; return each.decode(); }))"""
"""Waits for every picture that is in sight."""
SEARCH = "#/library/0/search/text%3Da%2520yellow%2520robot"
MOMENTS = "#/library/0/moments/text%3Dyellow%2520dogs%2520in%2520a%2520forest%2520at%2520night"


def make_library(folder: Path) -> Path:
    """Draw the films and make their library."""
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from kinodex.sketch.sample import sample

    sample(folder / "films", hours=HOURS, seed=SEED)
    run_ingest(IngestConfig(space="builtin"), list_sources([str(folder / "films")]), str(folder / "films-library"))
    return folder / "films-library"


def take(browser: Any, address: str, sign: str, size: dict[str, int], scheme: str, out: Path) -> None:
    """Open an address and write its picture once the sign and the pictures in sight are there."""
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.goto(address)
    page.wait_for_selector(sign)
    page.evaluate(LOADED)
    page.screenshot(path=out)
    page.close()


def main(out: Path) -> None:
    """Make the library and write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        library = make_library(Path(folder))
        with serving([library], Path(folder) / "traces") as client, chromium() as browser:
            home = client.address
            take(browser, f"{home}/#/library/0", ".posters img", DESK, "light", out / "viewer-library.png")
            take(browser, f"{home}/#/library/0", ".posters img", PHONE, "dark", out / "viewer-library-phone.png")
            take(browser, f"{home}/{SEARCH}", ".hit img", DESK, "light", out / "viewer-search.png")
            take(browser, f"{home}/{MOMENTS}", ".moment-card img", DESK, "light", out / "viewer-moments.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
