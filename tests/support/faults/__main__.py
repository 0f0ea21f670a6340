"""Disturb operations at every step: `python -m tests.support.faults [NAME...] [--layer disk|s3] [--fault NAME]`.

Prints what does not hold, and with `--out FILE` keeps the table of all trials there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.faults.disk import FAULTS, reloaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; all by default")
    parser.add_argument("--layer", choices=("disk", "s3"), default="disk")
    parser.add_argument("--fault", action="append", choices=tuple(FAULTS), help="all by default")
    parser.add_argument("--calls", type=int, default=0, help="disturb no more than about so many calls of each; 0: all")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    reloaded()
    from tests.support.faults.operations import OPERATIONS, give
    from tests.support.faults.trials import Disk, attempt, undisturbed

    found, wrong = [], 0
    with TemporaryDirectory() as folder:
        given = give(Path(folder))
        layer = Disk(Path(folder), given)
        for name in asked.names or OPERATIONS:
            for fault in asked.fault or FAULTS:
                began, operation = time.monotonic(), OPERATIONS[name]
                counted, rows = undisturbed(layer, given, operation, FAULTS[fault])
                every = max(1, -(-counted // asked.calls)) if asked.calls else 1
                trials = [
                    attempt(layer, given, operation, FAULTS[fault], nth, rows)
                    for nth in range((every + 1) // 2, counted + 1, every)
                ]
                outcomes = Counter(each.outcome for each in trials)
                bad = [each for each in trials if each.wrong]
                wrong += len(bad)
                spent_s = time.monotonic() - began
                print(
                    f"{name}, {fault}: {len(trials)} of {counted}, {dict(outcomes)}, {len(bad)} wrong, {spent_s:.0f} s",
                    flush=True,
                )
                for each in bad:
                    print(
                        f"    {each.nth} ({each.first}): {each.outcome} {each.message[:100]}",
                        *each.wrong[:4],
                        sep="\n        ",
                        flush=True,
                    )
                found.append(
                    {
                        "operation": name,
                        "fault": fault,
                        "calls": counted,
                        "tried": len(trials),
                        "outcomes": dict(outcomes),
                        "wrong": [vars(each) for each in bad],
                    }
                )
                if asked.out:
                    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
