"""Disturb operations at every step: `python -m tests.support.faults [NAME...] [--layer disk|s3] [--fault NAME]`.

Prints a table: of the calls that could fail how many did, how the operation ended, and what does not hold. Exit code 3
where something does not. With `--kept FOLDER` what is through is kept there, and not tried again by a later run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.support.faults.disk import reloaded

if TYPE_CHECKING:
    from tests.support.faults.operations import Given, Operation
    from tests.support.faults.trials import Layer

Cells = dict[str, dict[str, Any]]
"""By fault: a cell's text, how many of its trials do not hold and lines about them, and the commit that was tried."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; all by default")
    parser.add_argument("--layer", choices=("disk", "s3"), default="disk")
    parser.add_argument("--fault", action="append", help="all by default")
    parser.add_argument("--calls", type=int, default=0, help="disturb no more than this many calls of each; 0: all")
    parser.add_argument("--kept", type=Path, help="a folder for the cells that are through")
    asked = parser.parse_args()
    if asked.layer == "disk":
        reloaded()
    if "extract" in asked.names or not asked.names:
        import openai  # noqa: F401 - what it would import in each trial

    from tests.support.faults import disk, store
    from tests.support.faults.operations import OPERATIONS, give
    from tests.support.faults.trials import Disk

    wrong, commits = 0, Counter[str]()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        given = give(Path(folder))
        is_disk = asked.layer == "disk"
        layer = Disk(Path(folder), given) if is_disk else stack.enter_context(store.running(Path(folder), given))
        faults = asked.fault or list(disk.FAULTS if is_disk else store.FAULTS)
        print("|".join(["", " operation ", *(f" {fault} " for fault in faults), " wrong ", ""]))
        print("|---" * (len(faults) + 2) + "|", flush=True)
        for name in asked.names or OPERATIONS:
            file = asked.kept / f"{asked.layer} {name}.json" if asked.kept else Path(folder) / "row.json"
            cells: Cells = json.loads(file.read_text()) if asked.kept and file.exists() else {}
            if missing := [fault for fault in faults if fault not in cells]:
                file.parent.mkdir(parents=True, exist_ok=True)
                for fault, cell in tried(layer, given, OPERATIONS[name], missing, asked.calls):
                    cells[fault] = cell
                    file.write_text(json.dumps(cells, indent=1))
            row = [cells[fault] for fault in faults]
            failed = sum(cell["wrong"] for cell in row)
            print("| " + " | ".join([name, *(cell["text"] for cell in row), str(failed)]) + " |", flush=True)
            for line in (line for cell in row for line in cell["lines"]):
                print(line, flush=True)
            wrong += failed
            commits.update(cell["commit"] for cell in row)
    print(f"cells by the commit that was tried: {dict(commits)}")
    return 3 if wrong else 0


def tried(
    layer: Layer, given: Given, operation: Operation, faults: list[str], calls: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Disturb one operation by each fault."""
    from tests.support.faults.trials import attempt, undisturbed

    counted, rows = undisturbed(layer, given, operation)
    asked = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.check_output(asked, cwd=Path(__file__).parent, text=True).strip()
    for fault in faults:
        trials = [attempt(layer, given, operation, fault, nth, rows) for nth in sampled(counted[fault], calls)]
        text = f"{len(trials)} of {counted[fault]}: {_counts(Counter(each.outcome for each in trials))}"
        wrong = [each for each in trials if each.wrong]
        lines = []
        for each in wrong:
            lines += [f"    {fault}, {each.nth} ({each.first}): {each.outcome} {each.message}"]
            lines += [f"        {line}" for line in each.wrong]
        yield fault, {"text": text, "wrong": len(wrong), "lines": lines, "commit": commit}


def sampled(counted: int, calls: int) -> list[int]:
    """The numbers of this many of all calls, from 1: the first, the last, and evenly between; 0: of all."""
    if not calls or calls >= counted:
        return list(range(1, counted + 1))
    if calls == 1:
        return [(counted + 1) // 2]
    return [1 + round(step * (counted - 1) / (calls - 1)) for step in range(calls)]


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items(), key=lambda each: -each[1]))


if __name__ == "__main__":
    sys.exit(main())
