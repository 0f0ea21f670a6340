"""docs/papers.md against the catalogue: parameters with their defaults, and ablations, both ways."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.settings import with_settings

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
CONTROLS = {"uniform", "similarity", "blind", "random"}
SECTION = re.compile(r"^## .*\(`(\w+)`\)$", re.MULTILINE)
SECONDS = {"here": 3600.0, "under 5 minutes": 299.0, "over an hour": 3601.0}
OTHER_LENGTHS = (60.0, 299.0, 301.0, 3600.0, 3601.0, 20_000.0)
AFTER_PAPERS = [variant for variant in VARIANTS if variant.name not in CONTROLS]


def sections() -> dict[str, str]:
    """The page's sections about an agent, by the agent's name."""
    parts = SECTION.split(PAGE.read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(text: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column has this title, by column."""
    lines = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def shown(variant: Variant, seconds: float, **settings: object) -> dict[str, str]:
    parameters = with_settings(variant.parameters(seconds), settings)
    return {name: f"`{value}`" for name, value in asdict(parameters).items()}


def test_every_agent_of_a_paper_has_a_section():
    assert sorted(sections()) == sorted(variant.name for variant in AFTER_PAPERS)


@pytest.mark.parametrize("variant", AFTER_PAPERS, ids=lambda variant: variant.name)
def test_parameters_are_those_of_the_agent(variant):
    rows = table(sections()[variant.name], "parameter")
    lengths = [column for column in rows[0] if column in SECONDS]
    for column in lengths:
        written = {row["parameter"].strip("`"): row[column] or row["here"] for row in rows}
        assert written == shown(variant, SECONDS[column]), column
    told = [shown(variant, SECONDS[column]) for column in lengths]
    assert all(shown(variant, seconds) in told for seconds in OTHER_LENGTHS)


def test_each_mechanism_names_the_code_that_has_it():
    tables = [table(text, "mechanism") for text in sections().values() if "| mechanism |" in text]
    code = [path for folder in ("agent", "jobs/train") for path in (PAGE.parents[1] / folder).rglob("*.*")]
    assert len(tables) >= 3
    for row in [row for rows in tables for row in rows]:
        file, _, name = row["here"].strip("`").partition(":")
        (path,) = (each for each in code if each.as_posix().endswith(f"/{file}"))
        assert not name or re.search(rf"(def|class) {name}\b", path.read_text()), row


@pytest.mark.parametrize("variant", AFTER_PAPERS, ids=lambda variant: variant.name)
def test_ablations_are_those_of_the_agent(variant):
    written = {row["ablation"]: row["settings"].split() for row in table(sections()[variant.name], "ablation")}
    assert written == {
        what: [f"`{name}={value}`" for name, value in settings.items()] for what, settings in variant.ablations.items()
    }


def test_each_defect_of_the_audit_has_its_test():
    table = (PAGE.parent / "agents.md").read_text().partition("## What an audit of every message found")[2]
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", table)
    assert len(named) > 14
    for file, name in named:
        there = [path.read_text() for path in PAGE.parents[1].joinpath("tests").rglob(file)]
        assert any(f"def test_{name}" in text for text in there), (file, name)
