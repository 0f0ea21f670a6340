"""Disturb operations at every step: `python -m tests.support.faults [NAME...] [--layer disk|s3] [--fault NAME]`.

Prints a table: of the calls that could fail how many did, how the operation ended, and what does not hold. Exit code 3
where something does not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.faults.disk import reloaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; all by default")
    parser.add_argument("--layer", choices=("disk", "s3"), default="disk")
    parser.add_argument("--fault", action="append", help="all by default")
    parser.add_argument("--calls", type=int, default=0, help="disturb no more than about so many calls of each; 0: all")
    asked = parser.parse_args()
    if asked.layer == "disk":
        reloaded()
    from tests.support.faults import disk, store
    from tests.support.faults.operations import OPERATIONS, give
    from tests.support.faults.trials import Disk, attempt, undisturbed

    wrong = 0
    with TemporaryDirectory() as folder, ExitStack() as stack:
        given = give(Path(folder))
        is_disk = asked.layer == "disk"
        layer = Disk(Path(folder), given) if is_disk else stack.enter_context(store.running(Path(folder), given))
        faults = asked.fault or list(disk.FAULTS if is_disk else store.FAULTS)
        print("|".join(["", " operation ", *(f" {fault} " for fault in faults), " wrong ", ""]))
        print("|---" * (len(faults) + 2) + "|")
        for name in asked.names or OPERATIONS:
            cells, found = [], []
            for fault in faults:
                counted, rows = undisturbed(layer, given, OPERATIONS[name], fault)
                every = max(1, -(-counted // asked.calls)) if asked.calls else 1
                calls = range((every + 1) // 2, counted + 1, every)
                trials = [attempt(layer, given, OPERATIONS[name], fault, nth, rows) for nth in calls]
                outcomes = Counter(each.outcome for each in trials)
                cells.append(f"{len(trials)} of {counted}: {', '.join(f'{n} {each}' for each, n in outcomes.items())}")
                found += [(fault, each) for each in trials if each.wrong]
            print("| " + " | ".join([name, *cells, str(len(found))]) + " |", flush=True)
            for fault, each in found:
                print(
                    f"    {fault}, {each.nth} ({each.first}): {each.outcome} {each.message}",
                    *each.wrong,
                    sep="\n        ",
                )
            wrong += len(found)
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
