"""Searches of films with exact truth: claims with the ranges in which they are true, and claims that are true nowhere.

A claim that is true nowhere is one that is true somewhere with a fact changed, so that it is as like as can be. Shots
that follow each other make one range.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from jobs.synthetic.world.captions import altered, claim_about, plain_wording
from jobs.synthetic.world.claims import ANY_WORD, SEVERAL, Claim, truth
from jobs.synthetic.world.script import Script

TRIES = 50
"""Claims to try for each search; films that hold too little for `count` searches get fewer."""


def write_searches(films: Mapping[str, Script], count: int, seed: int) -> list[dict[str, Any]]:
    """Write up to `count` searches over films by their file names, every second one of what none of them shows.

    Each is a row of `jobs.benchmarks.moment_datasets.custom`; of one film it names it, of several it searches all. The
    same arguments give the same.
    """
    chance = Random(f"searches/{'/'.join(films)}/{seed}")
    shots = [shot for script in films.values() for shot in script.shots]
    only = {"video": next(iter(films))} if len(films) == 1 else {}
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for _ in range(TRIES * count):
        absent = len(rows) % 2 == 1
        claim = claim_about(chance.choice(shots).scene, chance)
        claim = altered(claim, chance) if absent else claim
        if claim.word == ANY_WORD or any(group.count == SEVERAL for group in claim.groups):
            continue  # they have no plain wording
        text = plain_wording(claim)
        moments = [[video, *each] for video, script in films.items() for each in _ranges(script, claim)]
        if absent is bool(moments) or text in texts:
            continue
        texts.add(text)
        category = "absent" if absent else "one range" if len(moments) == 1 else "several ranges"
        target = {"absent": True} if absent else {"relevant": moments}
        rows.append({"id": f"{len(rows) + 1:03d}", **only, "text": text, "category": category} | target)
        if len(rows) == count:
            break
    return rows


def _ranges(script: Script, claim: Claim) -> list[tuple[float, float]]:
    """The half-open ranges of a film in which a claim is true, shots that follow each other joined."""
    found: list[tuple[float, float]] = []
    true = truth([claim], [shot.scene for shot in script.shots])[0]
    for shot, is_true in zip(script.shots, true.tolist(), strict=True):
        if is_true and found and found[-1][1] == shot.start_s:
            found[-1] = found[-1][0], shot.end_s
        elif is_true:
            found.append((shot.start_s, shot.end_s))
    return found
