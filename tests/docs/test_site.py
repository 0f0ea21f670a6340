"""The documentation: the site builds without a warning, needs no network, and its page of commands is theirs."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import kinodex
from docs.commands_page import reference

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site; a dead link, an anchor that is not there or a page that no list names fails here."""
    built: Path = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-b", "html"]
    ran = subprocess.run([*command, str(ROOT / "docs"), str(built)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return built


class _Asked(HTMLParser):
    """The files that a browser fetches to show a page, and the targets of its links."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("img", "script", "link", "source", "iframe"):
            self.fetched += [each for each in (given.get("src"), given.get("href")) if each]
        elif tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")


@pytest.mark.slow
def test_every_page_shows_without_a_network(site):
    pages = sorted(site.glob("*.html"))
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {page.stem for page in pages}
    for page in pages:
        asked = _Asked()
        asked.feed(page.read_text())
        assert asked.fetched, page
        away = [each for each in asked.fetched if re.match(r"(https?:)?//", each)]
        missing = [each for each in asked.fetched if each != "#" and not (page.parent / each.split("?")[0]).is_file()]
        assert (page.name, away, missing) == (page.name, [], [])


@pytest.mark.slow
def test_every_public_name_has_its_place_in_the_reference(site):
    page = (site / "api.html").read_text()
    assert [name for name in kinodex.__all__ if f'id="kinodex.{name}"' not in page] == []


def test_the_package_carries_its_types():
    assert (files("kinodex") / "py.typed").is_file()


@pytest.mark.slow
def test_links_within_the_site_lead_somewhere(site):
    for page in site.glob("*.html"):
        asked = _Asked()
        asked.feed(page.read_text())
        here = [each for each in asked.links if not re.match(r"[a-z]+:", each)]
        for target in here:
            path, _, anchor = target.partition("#")
            found = page if not path else page.parent / path
            assert found.is_file(), f"{page.name} links to {target}"
            assert not anchor or f'id="{anchor}"' in found.read_text(), f"{page.name} links to {target}"


def test_links_of_the_readme_lead_to_files():
    text = (ROOT / "README.md").read_text()
    targets = [each for found in LINK.findall(text) for each in found if each and not re.match(r"[a-z]+:", each)]
    assert "docs/pictures/ask-light.png" in targets
    assert [each for each in targets if not (ROOT / each.partition("#")[0]).exists()] == []


def test_the_page_of_commands_is_what_the_commands_say():
    written = (ROOT / "docs" / "commands.md").read_text()
    assert written == reference(), "the commands have changed: run `make docs` and commit docs/commands.md"
    assert r"| `FOLDER\|FILE <str>` |" in written, "choices are no cells of the table"
