"""Runs of four made-up questions about three videos."""

from __future__ import annotations

from pathlib import Path

from kinodex.agent.limits.ledger import Ledger
from tests.support.runs.solved_runs import answer, item, write_run

ITEMS = [
    item(name, video, duration_s=90.0, groups={"question_type": ("a | b",)})
    for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v3"))
]


def small_run(folder: Path, right=(True, True, True, False), name: str = "eea", **others) -> Path:
    records = [
        answer(each.item_id, 0 if good else 1, name, ledger=Ledger(frames=10, input_tokens=1000, cost=0.25))
        for each, good in zip(ITEMS, right, strict=True)
    ]
    return write_run(folder, ITEMS, records, names=(name,), **others)
