"""Disturb operations at every step: `python -m tests.support.faults [NAME...] [--layer disk|s3] [--fault NAME]`.

Prints a table: of the calls that could fail how many did, how the operation ended, and what does not hold. Exit code 3
where something does not. With `--kept FOLDER` each operation's row is kept there, and not tried again by a later run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.support.faults.disk import reloaded

if TYPE_CHECKING:
    from tests.support.faults.operations import Given, Operation
    from tests.support.faults.trials import Layer

Row = dict[str, Any]
"""Of an operation: the text of each fault's cell, lines of what does not hold, and the commit that was tried."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; all by default")
    parser.add_argument("--layer", choices=("disk", "s3"), default="disk")
    parser.add_argument("--fault", action="append", help="all by default")
    parser.add_argument("--calls", type=int, default=0, help="disturb no more than so many calls of each; 0: all")
    parser.add_argument("--kept", type=Path, help="a folder for the rows of operations that are through")
    asked = parser.parse_args()
    if asked.layer == "disk":
        reloaded()
    import openai  # noqa: F401 - what an operation would import in each trial

    from tests.support.faults import disk, store
    from tests.support.faults.operations import OPERATIONS, give
    from tests.support.faults.trials import Disk

    wrong = 0
    with TemporaryDirectory() as folder, ExitStack() as stack:
        given = give(Path(folder))
        is_disk = asked.layer == "disk"
        layer = Disk(Path(folder), given) if is_disk else stack.enter_context(store.running(Path(folder), given))
        faults = asked.fault or list(disk.FAULTS if is_disk else store.FAULTS)
        print("|".join(["", " operation ", *(f" {fault} " for fault in faults), " wrong ", ""]))
        print("|---" * (len(faults) + 2) + "|", flush=True)
        for name in asked.names or OPERATIONS:
            file = asked.kept and asked.kept / f"{asked.layer} {name}.json"
            if file and file.exists():
                row = json.loads(file.read_text())
            else:
                row = tried(layer, given, OPERATIONS[name], faults, asked.calls)
                if file:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(json.dumps(row, indent=1))
            print("| " + " | ".join([name, *row["cells"].values(), str(row["trials_wrong"])]) + " |")
            print(*row["wrong"], sep="\n", end="\n" if row["wrong"] else "", flush=True)
            wrong += row["trials_wrong"]
    return 3 if wrong else 0


def tried(layer: Layer, given: Given, operation: Operation, faults: list[str], calls: int) -> Row:
    """Disturb one operation by each fault."""
    from tests.support.faults.trials import attempt, undisturbed

    counted, rows = undisturbed(layer, given, operation)
    cells, wrong, trials_wrong = {}, [], 0
    for fault in faults:
        trials = [attempt(layer, given, operation, fault, nth, rows) for nth in sampled(counted[fault], calls)]
        cells[fault] = f"{len(trials)} of {counted[fault]}: {_counts(Counter(each.outcome for each in trials))}"
        for each in (each for each in trials if each.wrong):
            trials_wrong += 1
            wrong += [f"    {fault}, {each.nth} ({each.first}): {each.outcome} {each.message}"]
            wrong += [f"        {line}" for line in each.wrong]
    asked = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.check_output(asked, cwd=Path(__file__).parent, text=True).strip()
    return {"cells": cells, "trials_wrong": trials_wrong, "wrong": wrong, "commit": commit}


def sampled(counted: int, calls: int) -> list[int]:
    """The numbers of so many of all calls, from 1: the first, the last, and evenly between; 0: of all."""
    if not calls or calls >= counted:
        return list(range(1, counted + 1))
    if calls == 1:
        return [(counted + 1) // 2]
    return [1 + round(step * (counted - 1) / (calls - 1)) for step in range(calls)]


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items(), key=lambda each: -each[1]))


if __name__ == "__main__":
    sys.exit(main())
