"""The benchmarks of moments by name: their readers, sources and licences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from jobs.benchmarks.moment_datasets import custom
from jobs.benchmarks.moments import MomentBenchmark, ParsedMoments
from jobs.benchmarks.registry import UnknownBenchmark
from jobs.errors import UsageError


@dataclass(frozen=True, slots=True)
class MomentBenchmarkInfo:
    """Facts of a benchmark of moments. `files` are the names of its annotation file, the usual first."""

    title: str
    read: Callable[[Path], ParsedMoments]
    files: tuple[str, ...]
    had_from: str
    licence: str


MOMENT_BENCHMARKS: Mapping[str, MomentBenchmarkInfo] = {
    "own": MomentBenchmarkInfo(
        "Searches of one's own",
        custom.read,
        ("searches.jsonl",),
        "a file of your own, with a line of JSON for each search: id, text, video, relevant",
        "yours",
    ),
}


def find_moment_benchmark(name: str) -> MomentBenchmarkInfo:
    """Find the benchmark of moments of this name; raise `UnknownBenchmark` with the nearest name."""
    if name in MOMENT_BENCHMARKS:
        return MOMENT_BENCHMARKS[name]
    near = get_close_matches(name.lower(), MOMENT_BENCHMARKS, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownBenchmark(f"got benchmark {name}; {hint}there are {', '.join(MOMENT_BENCHMARKS)}")


def read_moment_benchmark(name: str, path: Path) -> MomentBenchmark:
    """Read the samples in a published file, or in the folder that holds it, and the defects of other rows.

    Raises `UsageError` for a file of something else, in which no row can be read.
    """
    info = find_moment_benchmark(name)
    candidates = [path] if path.is_file() else [path / each for each in info.files]
    file = next(filter(Path.is_file, candidates), None)
    if file is None:
        raise UsageError(
            f"{path} neither is nor holds an annotation file of {info.title}: {' or '.join(info.files)}; "
            f"give its path; source: {info.had_from}"
        )
    samples, problems = info.read(file)
    if not samples:
        first = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise UsageError(
            f"no search of {info.title} can be read from {file}{first}; give the file as it was "
            f"published; source: {info.had_from}"
        )
    return MomentBenchmark(name, info.title, samples, problems)
