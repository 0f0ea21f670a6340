"""The places that a user names, sorted into traces, runs and libraries; the viewer opens nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import PLAN, Run, read_run


@dataclass(frozen=True, slots=True)
class ViewerInputs:
    """Traces, runs and libraries in the order of the command line, with the libraries of runs that are gone."""

    traces: tuple[Path, ...]
    runs: tuple[Run, ...]
    libraries: tuple[Library, ...]
    missing: tuple[str, ...] = ()


def classify_inputs(places: Sequence[str]) -> ViewerInputs:
    """Sort places: files are traces, folders with a plan runs, the rest libraries; raises UsageError, LibraryError."""
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
    unnamed = [uri for uri in behind if uri not in {each.uri for each in libraries}]
    found = [Library.open(uri) for uri in unnamed if Library.exists(uri)]
    missing = tuple(uri for uri in unnamed if not Library.exists(uri))
    return ViewerInputs(tuple(traces), tuple(runs), (*libraries, *found), missing)
