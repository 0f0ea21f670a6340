"""Ground: the seconds that show something, by search or by an agent, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import kinodex as package
from tests.acceptance import FACTS, LINE, TENTS, WORDS, Fact
from tests.support.command import Kinodex, bad, json_of


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.film)
def test_the_best_range_lies_where_it_is_shown(kinodex: Kinodex, shown: Path, fact: Fact) -> None:
    made = json_of(kinodex, "ground", shown, fact.words, "-k", 1)
    (best,) = made["ranges"]
    assert best["title"] == fact.film and fact.covers(best["start_s"]) and best["end_s"] <= fact.end_s + 2
    assert (made["present"], made["by"]) == (None, "search"), "a search says nothing of presence"
    (same,) = package.open(shown).ground(fact.words, k=1).ranges
    assert (same.start_s, same.end_s) == (best["start_s"], best["end_s"])


def test_words_alone_give_the_range_of_the_line(kinodex: Kinodex, shown: Path) -> None:
    (best, *_) = json_of(kinodex, "ground", shown, "the code word is lantern", "--in", WORDS)["ranges"]
    _, film, start_s, end_s = LINE
    assert best["title"] == film and start_s - 1 < best["start_s"] <= start_s and end_s <= best["end_s"] < end_s + 1


def test_ranges_are_padded_and_written_as_a_table(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    table = tmp_path / "ranges.csv"
    plain = json_of(kinodex, "ground", shown, TENTS.words, "-k", 1)["ranges"][0]
    padded = json_of(kinodex, "ground", shown, TENTS.words, "-k", 1, "--pad", 1.5, "--csv", table)["ranges"][0]
    assert (padded["start_s"], padded["end_s"]) == (plain["start_s"] - 1.5, plain["end_s"] + 1.5)
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["title"], float(row["start_s"]), row["label"]) == (TENTS.film, padded["start_s"], TENTS.words)


def test_an_agent_answers_with_its_evidence(kinodex: Kinodex, shown: Path) -> None:
    by_agent = ("--agent", "uniform", "--video", TENTS.film)
    made = json_of(kinodex, "ground", shown, TENTS.words, *by_agent)
    assert made["by"] == "uniform" and all(each["title"] == TENTS.film for each in made["ranges"])


def test_what_ground_refuses(kinodex: Kinodex, shown: Path) -> None:
    for arguments, says in (
        ((" ",), "empty"),
        (("tents", "--in", "smells"), "smells"),
        (("tents", "--agent", "kinoo"), "did you mean 'kino'"),
        (("tents", "--pad", -1), "--pad"),
    ):
        bad(kinodex, "ground", shown, *arguments, code=2, says=says)
    with pytest.raises(package.KinodexError, match="empty"):
        package.open(shown).ground(" ")
