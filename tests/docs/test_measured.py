"""Every figure in a table of docs/measured.md stands in the results file that its section names."""

from __future__ import annotations

import json
import re
from pathlib import Path

FIGURE = re.compile(r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
EARLIER = "## Measured once"
"""The chapter of what takes hours: its tables name the commit instead."""


def test_the_figures_are_those_of_the_results(root: Path) -> None:
    page = (root / "docs" / "measured.md").read_text(encoding="utf-8").split(EARLIER)[0]
    named = set()
    for section in re.split(r"\n##+ ", page)[1:]:
        title, files = section.partition("\n")[0], re.findall(r"results/([\w-]+)\.json", section)
        named |= set(files)
        printed = "\n".join(_printed(root / "docs" / "results" / f"{file}.json") for file in files)
        figures = set(FIGURE.findall(printed))
        rows = [line for line in section.split("\n") if line.startswith("|")][2:]
        missing = {figure for row in rows for figure in FIGURE.findall(row)} - figures
        assert not files or not missing, f"{title}: {sorted(missing)} are not in {files}"
        assert files or not any(FIGURE.search(row) for row in rows), f"{title} names no results file"
    assert named == {path.stem for path in (root / "docs" / "results").glob("*.json")}


def test_every_result_is_of_a_measurement_that_is_there(root: Path) -> None:
    from docs.measure import MEASUREMENTS, commands_of

    for path in (root / "docs" / "results").glob("*.json"):
        commands = json.loads(path.read_text(encoding="utf-8"))["commands"]
        assert commands == commands_of(MEASUREMENTS[path.stem])


def _printed(path: Path) -> str:
    return "\n".join(json.loads(path.read_text(encoding="utf-8"))["printed"])
