"""`kinodex eval check`: the questions of an annotation file, its defects, and its videos that a library has."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.eval.options import BenchmarkArgument, IdsOption, MapOption, OnlyOption
from kinodex.cli.options import JsonOption, open_library
from kinodex.output import console, plain_table, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from kinodex.jobs.eval.items import Benchmark, Item

LISTED = 20


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
    """Read a benchmark; list its questions by group, its defective rows, and the videos that a library lacks.

    Exits with 1 if the library holds none of its videos.
    """
    from kinodex.jobs.eval.benchmarks import annotation_files, find_benchmark, read_benchmark
    from kinodex.jobs.eval.item_choice import parse_subset, select_items

    part = parse_subset(only or [], ids)
    read = read_benchmark(benchmark, annotations)
    read = replace(read, items=select_items(read.items, part))
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
    if library is not None and not found["library"]["found"]:
        raise typer.Exit(1)


def _counts(read: Benchmark[Item]) -> dict[str, Any]:
    groups: dict[str, Counter[str]] = {}
    for item in read.items:
        for breakdown, names in item.groups.items():
            groups.setdefault(breakdown, Counter()).update(names)
    return {
        "questions": len(read.items),
        "videos": len({item.video for item in read.items}),
        "with_truth": sum(item.truth.known for item in read.items),
        "with_evidence": sum(bool(item.truth.evidence) for item in read.items),
        "scoring": read.scoring,
        "options": dict(sorted(Counter(len(item.question.options) for item in read.items).items())),
        "groups": {breakdown: dict(counts.most_common()) for breakdown, counts in groups.items()},
    }


def _in_library(read: Benchmark[Item], library: str, id_map: Path | None) -> dict[str, Any]:
    from kinodex.jobs.eval.video_names import match_videos, read_id_map, with_nearest

    names = read_id_map(id_map) if id_map else None
    videos = open_library(library).videos()
    matching = match_videos(read.items, videos, names, read.episodes)
    return {
        "uri": library,
        "found": len(matching.videos),
        "questions": len(read.items) - sum(each.questions for each in matching.missing),
        "missing": [
            asdict(each) | ({"why": with_nearest(each, videos)} if at < LISTED else {})
            for at, each in enumerate(matching.missing)
        ],
    }


def _show(found: dict[str, Any], out: Console) -> None:
    from rich.markup import escape

    from kinodex.jobs.eval.item_choice import WHOLE

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
