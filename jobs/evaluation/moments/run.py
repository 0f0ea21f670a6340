"""A run: every case solved by every system, each result kept as soon as it is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.errors import ENDS_ALL, GONE_AFTER, BadSettings, ModelUnreachable, NeedsLanguage, TraceError, UnknownAgent
from agent.variants.plugin import plugin_source
from agent.variants.registry import is_plugin
from index.errors import KinodexError
from jobs.errors import UsageError
from jobs.evaluation.moments.cases import Case, Cases
from jobs.evaluation.moments.results import MODELS, Result, ResultFile
from jobs.evaluation.moments.systems import AGENT, Bench, Solve, solver
from jobs.model_choice import describe_models

MOST_FAILED = 20
"""Searches in a row that may fail otherwise before the run ends."""
ENDS_A_RUN = (*ENDS_ALL, BadSettings, ImportError, NeedsLanguage, TraceError, UnknownAgent)
"""What every other search would meet too."""


def run_settings(benchmark: str, file: Path, bench: Bench) -> dict[str, Any]:
    """The settings on which results depend: a file of results is for these alone. Systems may be added to it."""
    return {
        "benchmark": benchmark,
        "file": file.name,
        "library": bench.library.uri,
        "videos": len(bench.environment.videos),
        "contents": _contents(bench),
        "state": _state(bench),
        "space": bench.environment.space,
        "most": bench.most,
        "min_gap_s": bench.min_gap_s,
    }


def agent_settings(names: Sequence[str], bench: Bench) -> dict[str, dict[str, Any]]:
    """The further settings of the agents among the systems: their models, and the code of one that is not kinodex's."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        if name.startswith(AGENT):
            agent = name.removeprefix(AGENT)
            code = {"code": _digest(plugin_source(agent).encode())} if is_plugin(agent) else {}
            found[name] = {MODELS: describe_models(bench.choice), **code}
    return found


def run_cases(
    cases: Cases,
    names: Sequence[str],
    bench: Bench,
    results: ResultFile,
    report: Callable[[int, int], object],
    *,
    retry_errors: bool = False,
) -> list[Result]:
    """Solve what the file does not hold yet, and return the results of these cases and systems.

    A result of another text or picture under the same id is replaced: files of one's own are edited between runs. What
    the endpoint gave no reply to is not kept, and is asked again by the next run; what failed otherwise, by
    `retry_errors`. `report` is called with the numbers of results that are there and that there will be.

    Raises:
        KinodexError: the endpoint would refuse any other request too, gave no reply to several searches in a row, or
            many in a row failed; all results until then are kept.
    """
    todo = [(name, case) for name in names for case in cases.cases]
    if texts := [case.query.text for case in cases.cases if case.query.text]:
        bench.environment.source.embed_texts(texts)
    solvers = {name: solver(name, bench) for name in names}
    made_with = agent_settings(names, bench)
    queries = {case.case_id: _query_digest(case) for case in cases.cases}
    failures = {name: _Failures() for name in names}
    found = []
    for done, (name, case) in enumerate(todo):
        report(done, len(todo))
        kept, query = results.results.get((name, case.case_id)), queries[case.case_id]
        if kept is None or kept.query not in ("", query) or (retry_errors and kept.error):
            solved = failures[name].solve(name, solvers[name], case)
            kept = replace(solved, query=query, made_with=made_with.get(name, {}))
            if not failures[name].unheard:
                results.add(kept)
        found.append(kept)
    return found


@dataclass(slots=True)
class _Failures:
    """Failures of a system's searches in a row: `unheard` ones got no reply at all, `failed` ones went wrong otherwise.

    `solved` counts all searches of this run.
    """

    solved: int = 0
    unheard: int = 0
    failed: int = 0

    def solve(self, name: str, solve: Solve, case: Case) -> Result:
        """Solve a case; an error of this search alone is its result: others may succeed.

        Raises what any other search would meet too, the last of several errors in a row, and kinodex's own defects.
        """
        self.solved += 1
        try:
            result = solve(case)
        except Exception as error:
            if isinstance(error, ENDS_A_RUN) or not _is_of_one(error, name):
                raise
            lost = isinstance(error, ModelUnreachable)
            self.unheard, self.failed = (self.unheard + 1, self.failed) if lost else (0, self.failed + 1)
            if self.unheard >= GONE_AFTER or self.failed >= MOST_FAILED:
                raise
            said = str(error) if isinstance(error, KinodexError) else f"{type(error).__name__}: {error}"
            return Result(case.case_id, name, (), False, error=" ".join(said.split()))
        self.unheard = self.failed = 0
        return result


def _is_of_one(error: Exception, name: str) -> bool:
    """True for what one search may meet alone: an error with a sentence, or any of an agent's."""
    if name.startswith(AGENT):
        return not isinstance(error, UsageError)
    return isinstance(error, KinodexError)


def _contents(bench: Bench) -> str:
    """Say of a library what searches depend on: its videos, and what was added to them."""
    ids = "\n".join(sorted(video.video_id for video in bench.environment.videos))
    videos = f"videos {hashlib.sha256(ids.encode()).hexdigest()[:12]}"
    added = [f"{each.stage} by {each.model}, {each.rows:,} rows" for each in bench.library.additions.facts()]
    return "; ".join([videos, *added])


def _state(bench: Bench) -> str:
    """Digest of the times at which videos came and something was added last: contents may change and count the same."""
    videos = sorted((video.video_id, video.ingested_at.isoformat()) for video in bench.library.videos())
    return _digest(json.dumps([videos, str(bench.library.additions.newest_at())]).encode())


def _query_digest(case: Case) -> str:
    """Digest of what a system may see of a case: of a picture its content, which another may have replaced."""
    image = None
    if case.query.image is not None:
        try:
            image = _digest(case.query.image.read_bytes())
        except OSError:  # says the search itself
            image = "unreadable"
    return _digest(json.dumps([case.query.text, case.video_id, image]).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
