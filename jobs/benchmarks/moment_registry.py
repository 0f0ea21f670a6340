"""The benchmarks of moments by name: their readers, sources and licences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.benchmarks.moment_datasets import (
    activitynet_captions,
    cg_bench,
    charades_sta,
    custom,
    momentseeker,
    qvhighlights,
)
from jobs.benchmarks.moments import MomentBenchmark, ParsedMoments
from jobs.benchmarks.registry import find_by_name, find_file
from jobs.benchmarks.samples import Problem
from jobs.errors import UsageError


@dataclass(frozen=True, slots=True)
class MomentBenchmarkInfo:
    """Facts of a benchmark of moments. `files` are the names of its annotation file, the usual first.

    `sizes` are the numbers of searches of each published part, by its name; empty where they are not known.
    """

    title: str
    read: Callable[[Path], ParsedMoments]
    files: tuple[str, ...]
    sizes: Mapping[str, int]
    had_from: str
    licence: str


MOMENT_BENCHMARKS: Mapping[str, MomentBenchmarkInfo] = {
    "momentseeker": MomentBenchmarkInfo(
        "MomentSeeker",
        momentseeker.read,
        ("t2v.json", "it2v.json", "ti2v.json"),
        {},
        "https://huggingface.co/datasets/avery00/MomentSeeker",
        "CC-BY-NC-SA-4.0",
    ),
    "qvhighlights": MomentBenchmarkInfo(
        "QVHighlights",
        qvhighlights.read,
        ("highlight_val_release.jsonl", "highlight_test_with_gt.jsonl", "highlight_train_release.jsonl"),
        {"val": 1550, "test": 1542, "train": 7218},
        "data of https://github.com/jayleicn/moment_detr",
        "CC-BY-NC-SA-4.0",
    ),
    "charades-sta": MomentBenchmarkInfo(
        "Charades-STA",
        charades_sta.read,
        ("charades_sta_test.txt", "charades_sta_train.txt"),
        {"test": 3720, "train": 12408},
        "https://github.com/jiyanggao/TALL",
        "see its page; the videos are those of Charades",
    ),
    "activitynet-captions": MomentBenchmarkInfo(
        "ActivityNet Captions",
        activitynet_captions.read,
        ("val_1.json", "val_2.json", "train.json"),
        {"val_1": 17505, "val_2": 17031, "train": 37421},
        "https://cs.stanford.edu/people/ranjaykrishna/densevid",
        "see its page",
    ),
    "cg-bench": MomentBenchmarkInfo(
        "CG-Bench",
        cg_bench.read,
        ("cgbench.json", "cgbench_mini.json"),
        {"all": 12129, "mini": 3000},
        "https://huggingface.co/datasets/CG-Bench/CG-Bench, after asking there",
        "MIT; the videos belong to their owners",
    ),
    "own": MomentBenchmarkInfo(
        "Searches of one's own",
        custom.read,
        ("searches.jsonl",),
        {},
        "a file of your own, with a line of JSON for each search: id, text, video, relevant",
        "yours",
    ),
}


def find_moment_benchmark(name: str) -> MomentBenchmarkInfo:
    """Find the benchmark of moments of this name; raise `UnknownBenchmark` with the nearest name."""
    return find_by_name(name, MOMENT_BENCHMARKS)


def read_moment_benchmark(name: str, path: Path) -> MomentBenchmark:
    """Read the samples in a published file, or in the folder that holds it, and the defects of other rows.

    Raises `UsageError` for a file of something else, in which no row can be read.
    """
    info = find_moment_benchmark(name)
    file = find_file(path, info.title, info.files, info.had_from)
    samples, problems = info.read(file)
    if not samples:
        first = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise UsageError(
            f"no search of {info.title} can be read from {file}{first}; give the file as it was "
            f"published; source: {info.had_from}"
        )
    return MomentBenchmark(name, info.title, samples, (*_sizes(info, len(samples)), *problems))


def _sizes(info: MomentBenchmarkInfo, searches: int) -> tuple[Problem, ...]:
    if not info.sizes or searches in info.sizes.values():
        return ()
    published = ", ".join(f"{part} {size:,}" for part, size in info.sizes.items())
    return (Problem("file", f"got {searches:,} searches; published: {published}"),)
