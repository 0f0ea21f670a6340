"""`kinodex eval search` and `kinodex eval ground` on drawn films."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Kinodex, bad, json_of


@pytest.fixture(scope="module")
def searches(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shots of each film by their descriptions, and something that no film shows."""
    rows = []
    for film in ("film-01", "film-02", "film-03"):
        for number, shot in enumerate(json.loads((films / f"{film}.script.json").read_text())["shots"][:2]):
            moment = [film, shot["start_s"], shot["end_s"]]
            rows.append({"id": f"{film}/{number}", "text": shot["description"], "relevant": [moment], "category": film})
    rows.append({"id": "none", "text": "a title card that says KINODEX", "absent": True, "category": "none"})
    file = tmp_path_factory.mktemp("searches") / "searches.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_searches_of_drawn_films_are_scored_and_gone_on_with(
    kinodex: Kinodex, library: Path, searches: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results.jsonl"
    command = "eval", "search", "own", searches, "--library", library, "--contender", "frames", "--out", out
    made = json_of(kinodex, *command, "--limit", 2)
    assert (made["searches"], len(out.read_text().splitlines())) == (2, 3)
    made = json_of(kinodex, *command, "--contender", "fused", "--categories")
    assert made["searches"] == 6
    assert len(out.read_text().splitlines()) == 1 + 2 * 6
    frames = next(each for each in made["systems"] if each["system"] == "frames")
    assert frames["figures"]["moment R@5"]["mean"] > 0.5
    assert frames["figures"]["video R@1"]["questions"] == 6
    assert set(made["categories"]) == {"film-01", "film-02", "film-03"}
    bad(kinodex, *command, "--min-gap", 9, code=2, says="min_gap_s 2.0, and this run has 9.0")


@pytest.mark.slow
def test_ranges_and_verdicts_are_scored_with_an_agent_beside(
    kinodex: Kinodex, library: Path, searches: Path, tmp_path: Path
) -> None:
    systems = "--contender", "ground", "--contender", "agent:uniform"
    command = "eval", "ground", "own", searches, "--library", library, *systems, "--out", tmp_path / "results.jsonl"
    made = json_of(kinodex, *command)
    by_search, by_agent = made["systems"]
    assert by_search["figures"]["R@1 IoU 0.3"]["mean"] > 0.5
    assert "false alarms" not in by_search["figures"], "a search says of nothing that it is there"
    assert by_search["plain"]["AUROC"] is not None
    assert by_agent["plain"]["AUROC"] is None
    shown = kinodex(*command, "--markdown", "--failures")
    assert shown.code == 0
    assert "| ground | 7 |" in shown.out
    assert "7 searches, 6 of what is there and 1 of what is nowhere" in shown.out


def test_systems_and_benchmarks_that_are_not_there_are_refused(kinodex: Kinodex, library: Path, searches: Path) -> None:
    run = "eval", "search", "own", searches, "--library", library
    bad(kinodex, *run, "--contender", "smell", code=2, says="got the contender smell; there are frames, words")
    bad(kinodex, *run, "--contender", "agent:nobody", code=2, says="nobody")
    bad(kinodex, "eval", "ground", "charades", searches, "--library", library, code=2, says="charades-sta")
