"""The page of a report and its plots: whole, safe, readable in a browser, and marked where they are of a simulation."""

from __future__ import annotations

import html
import json
import re
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from PIL import Image

from kinodex.jobs.eval.page import plots, write_page
from tests.support.libraries.viewer_library import browser_path
from tests.support.runs.reports import AGENTS, CONTROLS, Player, sample_report

EVIL = '<script>alert(1)</script> --> $x^{ "&'


EVERY_PLOT = {"accuracy", "frames", "costs", "durations", "by_question_type", "pairs", "rounds", "entropy", "distance"}


BROWSER_S = 60
GROUND = {"phone": "rgb(17, 17, 19)", "desk": "rgb(244, 244, 245)"}
"""A frame's page has the scheme of the frame: a dark one and a light one."""
DPI = 100
"""Of the pictures that these tests draw: those of papers take three times as long."""


class Page(HTMLParser):
    """Tags with their attributes, and the rows of every table as texts of their cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.tables, self.scripts = [], [], []
        self._within = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._within = tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        self._within = None if tag in ("td", "th", "script", "style", "caption", "table") else self._within

    def handle_data(self, data):
        if self._within == "script":
            self.scripts.append(data)
        elif self._within in ("td", "th", "small", "button") and self.tables and self.tables[-1]:
            self.tables[-1][-1][-1] += data

    @property
    def standings(self):
        return {row[0].strip(): [" ".join(cell.split()) for cell in row] for row in self.tables[0]}


@pytest.fixture(autouse=True, scope="module")
def quickly_drawn():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kinodex.jobs.eval.plots.drawing.DPI", DPI)
        yield


@pytest.fixture(scope="module")
def report():
    facts = {"part of the benchmark": "duration = long"}
    return sample_report((*AGENTS[:2], *CONTROLS), questions=200, facts=facts)


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    return write_page(report, tmp_path_factory.mktemp("run"))


def read(path):
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_plot_is_on_the_page_and_beside_it(report, written):
    text, folder = written.read_text(encoding="utf-8"), written.parent / "figures"
    drawn = plots(report)
    assert {plot.name for plot in drawn} == EVERY_PLOT
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{kind}" for name in EVERY_PLOT for kind in ("svg", "png")
    }
    for plot in drawn:
        assert plot.title in text and f"figures/{plot.name}.svg" in text and f"figures/{plot.name}.png" in text
        ElementTree.parse(folder / f"{plot.name}.svg")
        with Image.open(folder / f"{plot.name}.png") as picture:
            assert picture.size == pytest.approx((plot.width_in * DPI, plot.height_in * DPI), abs=1)
            assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 2


@pytest.mark.slow
def test_the_tables_say_what_the_report_says(report, written):
    page = read(written)
    for each in report.standings:
        row = page.standings[each.name]
        assert row[1] == f"{each.accuracy.mean * 100:.1f} ± {each.accuracy.error * 100:.1f}"
        assert row[2] == f"{each.accuracy.low * 100:.1f} to {each.accuracy.high * 100:.1f}"
    pair = report.pairs[0]
    assert any(row[:2] == [pair.a, pair.b] and str(pair.only_a) in row for table in page.tables for row in table)
    text = html.unescape(written.read_text(encoding="utf-8"))
    assert "Part: duration = long." in text
    for each in (report.missing[0].video, report.problems[0].what, report.models["policy"], report.library):
        assert each in text


def test_the_page_asks_nothing_of_any_network(written):
    page = read(written)
    links = [value for _, each in page.tags for name, value in each.items() if name.endswith(("href", "src"))]
    assert links and all(link.startswith(("#", "figures/")) for link in links)
    policy = next(each["content"] for tag, each in page.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    text = written.read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.slow
def test_names_that_look_like_markup_are_only_names(tmp_path):
    players = (Player(EVIL, 0.5, 8, 2, True), Player("中文", 0.4, 8, 2, True))
    report = sample_report(players, questions=40, title=EVIL, library=EVIL, models={EVIL: EVIL}, facts={EVIL: EVIL})
    page = read(write_page(report, tmp_path))
    assert EVIL in page.standings
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not any("alert" in script for script in page.scripts)
    for path in (tmp_path / "figures").glob("*.svg"):
        ElementTree.parse(path)
        assert "<script" not in path.read_text(encoding="utf-8")


LOOK = """
<meta charset="utf-8"><body>
<iframe id="phone" style="width:390px;height:800px;color-scheme:dark" src="{page}"></iframe>
<iframe id="desk" style="width:1280px;height:800px;color-scheme:light" src="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const seen = {{}};
  for (const name of ["phone", "desk"]) {{
    const page = document.getElementById(name).contentDocument;
    const table = page.querySelector("table.sortable");
    const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent.trim());
    const button = table.tHead.rows[0].cells[1].querySelector("button");
    button.focus();
    button.click();
    const falling = names();
    button.click();
    seen[name] = {{
      wider: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      ground: getComputedStyle(page.body).backgroundColor,
      focus: page.activeElement === button,
      falling, rising: names(), sort: table.tHead.rows[0].cells[1].ariaSort,
      narrowest: Math.min(...[...page.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().width)),
    }};
  }}
  document.body.textContent = JSON.stringify(seen);
}});
</script>
"""


@pytest.mark.needs_chromium
def test_in_a_browser_it_fits_a_dark_phone_and_a_light_desk_and_its_tables_sort(written, report, tmp_path):
    browser = browser_path()
    look = tmp_path / "look.html"
    look.write_text(LOOK.format(page=written.as_uri()), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    options += [f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [browser, *options, "--dump-dom", look.as_uri()], capture_output=True, text=True, timeout=BROWSER_S, check=True
    )
    found = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert found, done.stdout[:500]
    best_first = [each.name for each in sorted(report.standings, key=lambda each: -each.accuracy.mean)]
    for name, seen in json.loads(html.unescape(found[1])).items():
        assert seen["wider"] <= 0
        assert seen["ground"] == GROUND[name]
        assert seen["focus"] and seen["sort"] == "ascending"
        assert seen["falling"] == best_first and seen["rising"] == best_first[::-1]
        assert seen["narrowest"] > 250
