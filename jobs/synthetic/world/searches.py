"""Searches of a film with exact truth: claims with the ranges in which they are true, and claims that are true nowhere.

A claim that is true nowhere is one that is true somewhere with a fact changed, so that it is as like as can be. Ranges
join shots that follow each other.
"""

from __future__ import annotations

from random import Random
from typing import Any

from jobs.synthetic.world.captions import altered, claim_about, plain_wording
from jobs.synthetic.world.claims import Claim, truth
from jobs.synthetic.world.script import Script

TRIES = 50
"""Claims to try for each search before a short film is left with fewer."""


def write_searches(script: Script, video: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Write up to `count` searches about a film, half of which are of what it does not show.

    Each is a row of `jobs.benchmarks.moment_datasets.custom`; the same arguments give the same.
    """
    chance = Random(f"searches/{script.film}/{seed}")
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for _ in range(TRIES * count):
        absent = len(rows) % 2 == 1
        claim = claim_about(chance.choice(script.shots).scene, chance)
        claim = altered(claim, chance) if absent else claim
        ranges, text = _ranges(script, claim), plain_wording(claim)
        if absent is not bool(ranges) and text not in seen:
            seen.add(text)
            truth_of = {"absent": True} if absent else {"relevant": [list(each) for each in ranges]}
            category = "absent" if absent else "one range" if len(ranges) == 1 else "several ranges"
            name = f"{script.film}-{len(rows) + 1:03d}"
            rows.append({"id": name, "video": video, "text": text, "category": category} | truth_of)
        if len(rows) == count:
            break
    return rows


def _ranges(script: Script, claim: Claim) -> list[tuple[float, float]]:
    """The half-open ranges of a film in which a claim is true, shots that follow each other joined."""
    found: list[tuple[float, float]] = []
    true = truth([claim], [shot.scene for shot in script.shots])[0]
    for shot, is_true in zip(script.shots, true.tolist(), strict=True):
        if not is_true:
            continue
        if found and found[-1][1] == shot.start_s:
            found[-1] = found[-1][0], shot.end_s
        else:
            found.append((shot.start_s, shot.end_s))
    return found
