"""Searches of drawn films in a folder: `python -m tests.sketch.searches films > searches.jsonl`.

Of films of the independent form, whose scripts are drawn again from their seed. A development tool, behind the measured
tables of search and grounding.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kinodex.jobs.errors import UsageError
from kinodex.sketch.script import Script, as_json, write_script
from tests.sketch.train import write_searches

COUNT = 120


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
            f"{folder} holds no films of `kinodex sample --form independent`; give the folder of such films"
        )
    return films


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
