"""What was given to look at: traces, runs and libraries, told apart; nothing else is ever opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from index.library import Library
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import PLAN, Run, read_run


@dataclass(frozen=True, slots=True)
class Given:
    """What was given, in that order. `lost` says of runs' libraries that are not there any more."""

    traces: tuple[Path, ...]
    runs: tuple[Run, ...]
    libraries: tuple[Library, ...]
    lost: tuple[str, ...] = ()


def told_apart(places: Sequence[str]) -> Given:
    """Files are traces, folders with a plan are runs, the rest libraries; a run brings its library, if it is there.

    Raises UsageError for what is none of them, and LibraryError for a library that cannot be opened.
    """
    traces, runs, libraries = [], [], []
    for place in dict.fromkeys(places):
        if Path(place).is_file():
            traces.append(Path(place))
        elif (Path(place) / PLAN).is_file():
            runs.append(read_run(Path(place)))
        elif Library.exists(place):
            libraries.append(Library.open(place))
        else:
            raise UsageError(
                f"got {place}, which is no trace, run or library; give a file that `kinodex ask --trace` "
                "wrote, a folder that `kinodex eval --out` wrote, or a library"
            )
    behind = dict.fromkeys(run.plan.library for run in runs)
    missing = [uri for uri in behind if uri not in {each.uri for each in libraries}]
    found = [Library.open(uri) for uri in missing if Library.exists(uri)]
    lost = tuple(uri for uri in missing if not Library.exists(uri))
    return Given(tuple(traces), tuple(runs), (*libraries, *found), lost)
