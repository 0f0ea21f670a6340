"""Disturb operations at every step: `python -m tests.support.faults [NAME...] [--layer disk|s3] [--fault NAME]`.

Prints what does not hold, and with `--out FILE` keeps the table of all trials there, beside what it has of other ones.
Exit code 3 where something does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.faults.disk import reloaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; all by default")
    parser.add_argument("--layer", choices=("disk", "s3"), default="disk")
    parser.add_argument("--fault", action="append", help="all by default")
    parser.add_argument("--calls", type=int, default=0, help="disturb no more than about so many calls of each; 0: all")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.layer == "disk":
        reloaded()
    from tests.support.faults import disk, store
    from tests.support.faults.operations import OPERATIONS, give
    from tests.support.faults.trials import Disk, Trial, attempt, undisturbed

    wrong = 0
    with TemporaryDirectory() as folder, ExitStack() as stack:
        given = give(Path(folder))
        is_disk = asked.layer == "disk"
        layer = Disk(Path(folder), given) if is_disk else stack.enter_context(store.running(Path(folder), given))
        for name in asked.names or OPERATIONS:
            for fault in asked.fault or (disk.FAULTS if is_disk else store.FAULTS):
                began, operation = time.monotonic(), OPERATIONS[name]
                counted, rows = undisturbed(layer, given, operation, fault)
                every = max(1, -(-counted // asked.calls)) if asked.calls else 1
                calls = range((every + 1) // 2, counted + 1, every)
                trials: Sequence[Trial] = [attempt(layer, given, operation, fault, nth, rows) for nth in calls]
                facts = {"layer": asked.layer, "operation": name, "fault": fault, "calls": counted}
                wrong += report(facts, trials, round(time.monotonic() - began), asked.out)
    return 3 if wrong else 0


def report(facts: dict[str, Any], trials: Sequence[Any], spent_s: int, out: Path | None) -> int:
    """Print a line of the table and what is wrong, keep it in the file, and return the number of wrong trials."""
    outcomes = dict(Counter(each.outcome for each in trials))
    bad = [each for each in trials if each.wrong]
    print(f"{facts}: {len(trials)} tried, {outcomes}, {len(bad)} wrong, {spent_s} s", flush=True)
    for each in bad:
        print(f"    {each.nth} ({each.first}): {each.outcome} {each.message[:200]}", *each.wrong, sep="\n        ")
    if out is not None:
        key = [facts[name] for name in ("layer", "operation", "fault")]
        known = json.loads(out.read_text()) if out.exists() else []
        kept = [row for row in known if [row[name] for name in ("layer", "operation", "fault")] != key]
        row = {**facts, "tried": len(trials), "outcomes": outcomes, "wrong": [vars(each) for each in bad]}
        out.write_text(json.dumps([*kept, row], indent=1) + "\n")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
