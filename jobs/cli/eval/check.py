"""`kinodex eval check`: list the questions of an annotation file, its defects, and its videos that a library has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.options.library import JsonOption

if TYPE_CHECKING:
    from rich.console import Console

    from jobs.benchmarks.samples import Benchmark

LISTED = 20

BenchmarkArgument = Annotated[str, typer.Argument(help="A benchmark's name, such as egoschema, lvbench or sketch.")]
MapOption = Annotated[
    Path | None, typer.Option("--map", exists=True, help="CSV or JSON: the library's names for the videos.")
]

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP=VALUE",
        help="Only these questions, such as duration=long. Repeated: of one group any value, of several groups all.",
    ),
]
IdsOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Only the questions in this file, an id a line.")
]


def check(
    benchmark: BenchmarkArgument,
    annotations: Annotated[
        Path, typer.Argument(exists=True, help="The benchmark's published file, or the folder that holds it.")
    ],
    library: Annotated[str | None, typer.Argument(help="A library whose videos it is to be asked about.")] = None,
    map_: MapOption = None,
    only: OnlyOption = None,
    ids: IdsOption = None,
    json: JsonOption = False,
) -> None:
    """Read a benchmark; list its questions by group, its defective rows, and the videos that a library lacks."""
    from jobs.benchmarks.registry import annotation_files, find_benchmark, read_benchmark
    from jobs.benchmarks.select_samples import parse_subset, select_samples
    from jobs.console.output import console, print_json

    part = parse_subset(only or [], ids)
    read = read_benchmark(benchmark, annotations)
    read = replace(read, samples=select_samples(read.samples, part))
    found: dict[str, Any] = {
        "benchmark": read.name,
        "title": read.title,
        "part": str(part),
        "files": list(map(str, annotation_files(benchmark, annotations))),
        "licence": find_benchmark(benchmark).licence,
        "had_from": find_benchmark(benchmark).had_from,
        **_counts(read),
        "problems": [{"where": each.where, "what": each.what} for each in read.problems],
    }
    if library is not None:
        found["library"] = _in_library(read, library, map_)
    if json:
        print_json(found)
    else:
        _show(found, console())


def _counts(read: Benchmark) -> dict[str, Any]:
    groups: dict[str, Counter[str]] = {}
    for item in read.samples:
        for breakdown, names in item.groups.items():
            groups.setdefault(breakdown, Counter()).update(names)
    return {
        "questions": len(read.samples),
        "videos": len({item.video for item in read.samples}),
        "with_truth": sum(item.truth.known for item in read.samples),
        "with_evidence": sum(bool(item.truth.evidence) for item in read.samples),
        "scoring": read.scoring,
        "options": dict(sorted(Counter(len(item.question.options) for item in read.samples).items())),
        "groups": {breakdown: dict(counts.most_common()) for breakdown, counts in groups.items()},
    }


def _in_library(read: Benchmark, library: str, id_map: Path | None) -> dict[str, Any]:
    from dataclasses import asdict

    from index.library import Library
    from jobs.benchmarks.select_samples import match_videos, read_id_map

    names = read_id_map(id_map) if id_map else None
    matching = match_videos(read.samples, Library.open(library).videos(), names, read.episodes)
    return {
        "uri": library,
        "found": len(matching.videos),
        "questions": len(read.samples) - sum(each.questions for each in matching.missing),
        "missing": [asdict(each) for each in matching.missing],
    }


def _show(found: dict[str, Any], out: Console) -> None:
    from rich.markup import escape

    from jobs.benchmarks.select_samples import WHOLE
    from jobs.console.output import plain_table

    out.print(f"[bold]{found['title']}[/], {escape(', '.join(found['files']))}", soft_wrap=True)
    out.print(f"licence: {found['licence']}; source: {found['had_from']}")
    if found["part"] != WHOLE:
        out.print(f"part: {found['part']}", soft_wrap=True, markup=False)
    counts = " or ".join(map(str, found["options"]))
    scored = "answered freely, judged 0 to 3" if found["scoring"] == "judge" else f"{counts} options"
    out.print(
        f"{found['questions']:,} questions about {found['videos']:,} videos, {scored}; "
        f"{found['with_truth']:,} with a known answer, {found['with_evidence']:,} with the seconds that show it"
    )
    table = plain_table("breakdown", "group", "questions")
    table.columns[-1].justify = "right"
    for breakdown, groups in found["groups"].items():
        for group, questions in groups.items():
            table.add_row(escape(breakdown), escape(group), f"{questions:,}")
    if found["groups"]:
        out.print(table)
    _list(out, "noted", [f"{each['where']}: {each['what']}" for each in found["problems"]])
    if "library" in found:
        held = found["library"]
        out.print(
            f"{escape(held['uri'])} has {held['found']:,} of {found['videos']:,} videos, "
            f"for {held['questions']:,} of {found['questions']:,} questions"
        )
        _list(out, "missing", [f"{each['video']} ({each['questions']}): {each['why']}" for each in held["missing"]])


def _list(out: Console, what: str, lines: list[str]) -> None:
    from rich.markup import escape

    if lines:
        out.print(f"{what}: {len(lines):,}")
    for line in lines[:LISTED]:
        out.print(f"  {escape(line)}", soft_wrap=True)
    if len(lines) > LISTED:
        out.print(f"  and {len(lines) - LISTED:,} more; --json has all")
