"""A run: every case solved by every system, each result kept as soon as it is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.evaluation.moments.cases import Case, Cases
from jobs.evaluation.moments.results import Result, ResultFile
from jobs.evaluation.moments.systems import AGENT, Bench, solver
from jobs.model_choice import describe_models


def run_settings(benchmark: str, file: Path, names: Sequence[str], bench: Bench) -> dict[str, Any]:
    """The settings on which results depend: a file of results is for these alone. Systems may be added to it."""
    agents = any(name.startswith(AGENT) for name in names)
    return {
        "benchmark": benchmark,
        "file": file.name,
        "library": bench.library.uri,
        "videos": len(bench.environment.videos),
        "contents": _contents(bench),
        "space": bench.environment.space,
        "most": bench.most,
        "min_gap_s": bench.min_gap_s,
        **({"models": describe_models(bench.choice)} if agents else {}),
    }


def run_cases(
    cases: Cases, names: Sequence[str], bench: Bench, results: ResultFile, report: Callable[[int, int], object]
) -> list[Result]:
    """Solve what the file does not hold yet, and return the results of these cases and systems.

    A result of another text under the same id is replaced: files of one's own are edited between runs. `report` is
    called with the numbers of results that are there and that there will be.
    """
    todo = [(name, case) for name in names for case in cases.cases]
    if texts := [case.query.text for case in cases.cases if case.query.text]:
        bench.environment.source.embed_texts(texts)
    solvers = {name: solver(name, bench) for name in names}
    for done, (name, case) in enumerate(todo):
        report(done, len(todo))
        stored, query = results.results.get((name, case.case_id)), _query_digest(case)
        if stored is None or stored.query not in ("", query):
            results.add(replace(solvers[name](case), query=query))
    return [results.results[name, case.case_id] for name, case in todo]


def _contents(bench: Bench) -> str:
    """Say of a library what searches depend on: its videos, and what was added to them."""
    ids = "\n".join(sorted(video.video_id for video in bench.environment.videos))
    videos = f"videos {hashlib.sha256(ids.encode()).hexdigest()[:12]}"
    added = [f"{each.stage} by {each.model}, {each.rows:,} rows" for each in bench.library.additions.facts()]
    return "; ".join([videos, *added])


def _query_digest(case: Case) -> str:
    """Digest of what a system may see of a case."""
    # Older versions kept results of a text with a picture that were searched by the text alone.
    image = None if case.query.image is None else f"searched by {case.query.image}"
    seen = json.dumps([case.query.text, case.video_id, image])
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
