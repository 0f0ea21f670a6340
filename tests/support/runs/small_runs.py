"""Runs of four made-up questions about three videos, and the Markdown tables that are printed of them."""

from __future__ import annotations

from pathlib import Path

from kinodex.agent.limits import Ledger
from tests.support.runs.solved_runs import answer, item, write_run

ITEMS = [
    item(name, video, duration_s=90.0, groups={"question_type": ("a | b",)})
    for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v3"))
]


def rows_of(markdown: str, title: str) -> list[list[str]]:
    """The cells of a Markdown table of this title: heads first."""
    lines = markdown.partition(f"**{title}**")[2].strip().partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")] for line in lines]
    assert set("".join(rows[1])) == {"-", ":"}
    assert {len(row) for row in rows} == {len(rows[0])}
    return [rows[0], *rows[2:]]


def small_run(folder: Path, right=(True, True, True, False), name: str = "eea", **others) -> Path:
    records = [
        answer(each.item_id, 0 if good else 1, name, ledger=Ledger(frames=10, input_tokens=1000, cost=0.25))
        for each, good in zip(ITEMS, right, strict=True)
    ]
    return write_run(folder, ITEMS, records, names=(name,), **others)
