"""A figure in README or docs carries, in the page's source, the results file that has it, or what else it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.measure import MEASUREMENTS, commands_of

FIGURE = re.compile(
    r"\d\s?(?:[kKMGT]B|ms|dB|CPU s|CPU seconds|frames a second)\b|\d\s?%|\d (?:\w+ )?a (?:CPU )?second\b|±"
    r"|(?<![\w.])0\.\d{2,3}\b(?!\.\d)|\btimes as\b|\d times\b|\b\d+ of (?:the )?\d+\b"
    r"|\d (?:hours|minutes) (?:of|on|for)\b|\b(?:in|after|takes?|took|costs?) \d[\d.,]* ?(?:s|seconds|minutes|hours)\b"
)
"""What makes a paragraph or table one of figures. What it takes and is none of ours says so in its mark."""
NUMBER = re.compile(r"(?<![\w.@-])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
MARK = re.compile(r"<!-- (results|published|derived|setting|example)\b(?:: (.*?))? -->", re.DOTALL)
"""In the source, at the end of a paragraph or list, or in the last cell of a table or of each of its rows: the files of
its figures (`results: NAME, NAME`); or that they are somebody else's (`published: WHERE`), arithmetic (`derived:
FROM`), limits, defaults and versions (`setting`), or the output of a command (`example`). The numbers that a mark names
beside `results` need not be in a file."""
LINK = re.compile(r"results/([\w-]+)\.json\)")
"""Names the file for a whole section."""
FENCE = re.compile(r"^( *)(```+).*?^\1\2$", re.DOTALL | re.MULTILINE)
UNREAD = re.compile(r"`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|^\|.*\n(?=\|[-:| ]+$)", re.DOTALL | re.MULTILINE)
"""Code, addresses of links, comments and heads of tables."""


class Paragraph(NamedTuple):
    """A paragraph, list or table: where it is, its figures as a reader sees them, its marks, and its files."""

    where: str
    shown: str
    marks: dict[str, str]
    files: list[str]


def paragraphs(root: Path) -> Iterator[Paragraph]:
    pages = {*root.glob("docs/*.md"), root / "README.md"} - {root / "docs" / "commands.md"}  # that one is generated
    for page in sorted(pages):
        text = FENCE.sub(lambda code: "\n" * code[0].count("\n"), page.read_text(encoding="utf-8"))
        for section in re.finditer(r"(?:^#|\A).*?(?=^#|\Z)", text, re.DOTALL | re.MULTILINE):
            for block in re.finditer(r"(?:^.*\S.*\n?)+", section[0], re.MULTILINE):
                line = text.count("\n", 0, section.start() + block.start()) + 1
                own = block[0].startswith("|") and block[0].count("<!-- results") > 1  # of rows with a mark each
                for part in block[0].splitlines() if own else [block[0]]:
                    marks = dict(MARK.findall(part))
                    files = re.findall(r"[\w-]+", marks.get("results", "")) or LINK.findall(section[0])
                    yield Paragraph(f"{page.name}:{line}", UNREAD.sub(" ", part), marks, files)


@pytest.fixture(scope="module")
def results(root: Path) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in root.glob("docs/results/*.json")}


def test_every_figure_stands_in_the_file_that_its_source_names(root: Path, results: dict[str, dict]) -> None:
    named = set()
    for where, shown, marks, files in paragraphs(root):
        named |= set(files)
        assert set(files) <= set(results), f"{where} names {files}; there are {sorted(results)}"
        if not FIGURE.search(shown) and not (files and shown.startswith("|")):
            continue
        assert files or marks, f"{where} has {FIGURE.findall(shown)} and no mark: name the file of its figures"
        assert all(marks.get(kind, "it") for kind in ("published", "derived")), f"{where} says not from where"
        if files:
            kept = "\n".join("\n".join(results[file]["printed"] + results[file]["commands"]) for file in files)
            excused = " ".join(about for kind, about in marks.items() if kind != "results")
            missing = _numbers(shown) - _numbers(kept) - _numbers(excused)
            assert not missing, f"{where}: {sorted(missing)} stand not in {files}"
    assert named == set(results), f"no page has the figures of {set(results) - named}"


def test_every_result_is_of_a_measurement_that_is_there(results: dict[str, dict]) -> None:
    for name, result in results.items():
        assert result["commands"] == commands_of(MEASUREMENTS[name]), name


def _numbers(text: str) -> set[str]:
    return {number.replace(",", "") for number in NUMBER.findall(text)}
