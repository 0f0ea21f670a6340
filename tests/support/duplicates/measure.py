"""Measure `kinodex duplicates` on films of known parts: `python -m tests.support.duplicates.measure LIBRARY FILMS`.

FILMS was made by `tests.support.duplicates.films` and ingested as LIBRARY. Prints precision and recall of pairs, for
copies of each kind, the errors of offsets, the share of right speeds, and CPU seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kinodex.index.library import Library
from kinodex.jobs.duplicates.search import Duplicate, find_duplicates
from tests.support.duplicates.films import LEAST_S, TruePair, read_parts, true_pairs

STILL = ("slides",)
Truth = dict[tuple[str, str], TruePair]


def main(library: str, films: Path) -> None:
    parts = read_parts(films)
    truth, touching = true_pairs(parts), true_pairs(parts, least_s=0.5)
    began = time.process_time()
    found = {(each.a.title, each.b.title): each for each in find_duplicates(Library.open(library), min_s=LEAST_S)}
    print(f"{len(parts)} films, {len(truth)} true pairs, {time.process_time() - began:.1f} CPU s")
    sets = {
        "all": list(truth),
        "without the one that stands still": [pair for pair in truth if _base(pair) not in STILL],
    }
    for name, pairs in sets.items():
        print(f"recall, {name}: {_share(pair in found for pair in pairs)} of {len(pairs)}")
    wrong = [pair for pair in found if pair not in touching]
    print(f"precision: {1 - len(wrong) / max(len(found), 1):.3f} of {len(found)}; wrong: {wrong}")
    for kind in ("small", "cut", "boxed", "titled", "faster", "mirrored", "first", "second", "mix"):
        of_kind = [pair for pair in truth if any(_kind(name) == kind for name in pair) and any(map(_original, pair))]
        print(f"recall, original and {kind}: {_share(pair in found for pair in of_kind)} of {len(of_kind)}")
    _print_errors({pair: each for pair, each in found.items() if pair in truth}, truth)


def _print_errors(right: dict[tuple[str, str], Duplicate], truth: Truth) -> None:
    errors = []
    for pair, each in right.items():
        middle = (each.ranges[0].start_a_s + each.ranges[0].end_a_s) / 2
        true_s = truth[pair].speed * middle + truth[pair].offset_s
        errors.append(abs(each.speed * middle + each.offset_s - true_s))
    at = np.quantile(errors, [0.5, 0.9, 0.95, 1.0])
    print(f"error of the offset in the middle of the first range: median {at[0]:.2f} s, 90 % {at[1]:.2f} s, ", end="")
    print(f"95 % {at[2]:.2f} s, largest {at[3]:.2f} s; within 1 s: {_share(error <= 1 for error in errors)}")
    for name, of_speed in {"1": True, "25/24": False}.items():
        speeds = [abs(right[p].speed - truth[p].speed) < 0.01 for p in right if (truth[p].speed == 1.0) == of_speed]
        print(f"speed {name} told right: {_share(speeds)} of {len(speeds)}")


def _share(marks: Iterable[bool]) -> str:
    listed = list(marks)
    return f"{sum(listed) / max(len(listed), 1):.3f}"


def _base(pair: tuple[str, str]) -> str:
    return next(name for name in pair if _kind(name) != "mix").split("_")[0] if pair[0] != pair[1] else pair[0]


def _kind(name: str) -> str:
    return "mix" if name.startswith("mix_") else name.split("_")[1]


def _original(name: str) -> bool:
    return name.endswith("_original")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
