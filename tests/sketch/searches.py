"""Searches of drawn films in a folder: `python -m tests.sketch.searches films > searches.jsonl`.

Of films of the independent form, whose scripts are drawn again from their seed: claims with the ranges in which they
are true, and claims that are true nowhere, each of them one that is true with a fact changed. The measured tables of
search and grounding come from them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from kinodex.jobs.errors import UsageError
from tests.sketch.captions import ANY_WORD, SEVERAL, Claim, altered, claim_about, is_true, plain_wording
from tests.world.sketch.script import Script, as_json, write_script

COUNT = 120
TRIES = 50
"""Claims to try for each search; films that hold too little for `count` searches get fewer."""


def read_films(folder: Path) -> dict[str, Script]:
    """The scripts of a folder's films by file name; raises UsageError for films of another form, and for none."""
    films: dict[str, Script] = {}
    for path in sorted(folder.glob("*.script.json")):
        written = json.loads(path.read_text(encoding="utf-8"))
        script = write_script(
            written["film"], written["duration_s"], written["seed"], spoken=bool(written.get("spoken"))
        )
        if as_json(script) != written:
            raise UsageError(
                f"{path} is no script of an independent film of this version; make films with --form independent"
            )
        films[f"{script.film}.mp4"] = script
    if not films:
        raise UsageError(
            f"{folder} holds no films of `tests.world.sample --form independent`; give the folder of such films"
        )
    return films


def write_searches(films: Mapping[str, Script], count: int, seed: int) -> list[dict[str, Any]]:
    """Write up to `count` searches over films by their file names, every second one of what none of them shows.

    Each is a row of `kinodex.jobs.eval.readers.own`; of one film it names it, of several it searches all. The
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
    for shot in script.shots:
        if not is_true(claim, shot.scene):
            continue
        if found and found[-1][1] == shot.start_s:
            found[-1] = found[-1][0], shot.end_s
        else:
            found.append((shot.start_s, shot.end_s))
    return found


def main(arguments: list[str]) -> None:
    """Print the searches over all films of a folder, or with --each over each film alone, as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=COUNT, help="searches, over all films or over each")
    parser.add_argument("--each", action="store_true", help="searches of each film alone")
    options = parser.parse_args(arguments)
    films = read_films(options.folder)
    seed = next(iter(films.values())).seed
    for part in [{name: script} for name, script in films.items()] if options.each else [films]:
        for row in write_searches(part, options.count, seed):
            prefix = f"{next(iter(part))}/" if options.each else ""
            print(json.dumps(row | {"id": f"{prefix}{row['id']}"}))


if __name__ == "__main__":
    main(sys.argv[1:])
