"""The page of a simulation."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from tests.sketch.simulation import Sweep, Trial, make_questions, read_simulation, simulate, write_simulation


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.links: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name in ("src", "href") and value]


def test_the_page_says_that_it_is_a_simulation_and_stands_alone(tmp_path):
    trials = tuple(
        Trial(float(minutes), agent, agent, duration_s=60.0 * minutes) for minutes in (2, 4) for agent in ("eea", "vca")
    )
    sweep = Sweep("duration", "Length <of> the videos", "minutes", "conditions", "eea", trials)
    simulation = simulate([sweep], make_questions(10, seed=0), 0, 1, lambda line: None)
    page = write_simulation(simulation, tmp_path)
    assert read_simulation(tmp_path) == simulation
    assert json.loads((tmp_path / "simulate.json").read_text())["simulated"] is True
    reader = _Text()
    reader.feed(page.read_text())
    assert reader.text.count("SIMULATION") >= 2
    assert "Length <of> the videos" in reader.text
    assert not [link for link in reader.links if not link.startswith("#")]
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"duration.svg", "duration.png"}
