"""The run of a benchmark of moments: its cases, the contenders' results, and the settings that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kinodex.agent.catalogue import is_plugin
from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.plugins import plugin_source
from kinodex.errors import KinodexError
from kinodex.index.errors import NoVectors
from kinodex.index.library import Library
from kinodex.jobs.batch import Batch, Limits, in_turn
from kinodex.jobs.errors import UsageError, check_packages
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.jobs.eval.items import MomentBenchmark
from kinodex.jobs.eval.moments.cases import Case, Cases, make_cases
from kinodex.jobs.eval.moments.contenders import AGENT, Bench, Solve, check_contenders, solver
from kinodex.jobs.eval.moments.query_pictures import READ_PICTURES, open_pictures
from kinodex.jobs.eval.moments.results import Result, ResultFile
from kinodex.jobs.eval.solve import ENDS_A_RUN
from kinodex.jobs.eval.video_names import check_own, match_names
from kinodex.jobs.models import ModelChoice, describe_models
from kinodex.jobs.open import open_environment

ENDS_OF_SEARCHES = tuple(set(ENDS_A_RUN) - {UsageError})
"""What every other search would meet too; an unreadable picture, a `UsageError`, is one search's."""
MOST_FAILED = 20
"""Searches in a row that may fail otherwise before the run ends."""


@dataclass(frozen=True, slots=True)
class MomentRequest:
    """A run: the first `limit` searches of a benchmark, by contenders that give `most` results each, `min_gap_s` apart.

    Results are kept in the file `out`. Without `absent` only what is there is searched for.
    """

    benchmark: str
    file: Path
    library: str
    contenders: Sequence[str]
    choice: ModelChoice
    most: int
    limit: int | None = None
    space: str | None = None
    out: Path | None = None
    retry_errors: bool = False
    min_gap_s: float = 0.0
    absent: bool = True
    where: str | None = None
    """Only videos for which this condition holds are searched, and only in them is searched."""


@dataclass(frozen=True, slots=True)
class MomentRun:
    """The cases of a run, the benchmark they are of, and the results."""

    benchmark: MomentBenchmark
    cases: Cases
    results: list[Result]


def run_moments(
    request: MomentRequest, announce: Callable[[ModelChoice], object], report: Callable[[int, int], object]
) -> MomentRun:
    """Solve the searches of a benchmark, or go on with them; `announce` gets the models before they are asked."""
    check_packages("scipy")
    names = check_contenders(request.contenders)
    benchmark = read_moment_benchmark(request.benchmark, request.file)
    whole = Library.open(request.library)
    library = whole.where(request.where)
    searches = [each for each in benchmark.items if request.absent or not each.absent]
    asked = Counter(name for each in searches for name in each.videos)
    matches = match_names(asked, whole.videos(), None)
    check_own(matches, benchmark.name, whole.videos())
    if request.where is not None:
        seen = library.video_ids()
        searches = [
            each
            for each in searches
            if seen.issuperset(id_ for name in each.videos for id_ in matches.videos.get(name, ()))
        ]
    pictures, videos = open_pictures(library, request.space, names, searches), library.videos()
    cases = make_cases(searches, videos, request.limit, pictures)
    environment = open_environment(library, space=request.space)
    if not environment.has_vectors and (comparing := [name for name in names if name in READ_PICTURES]):
        raise NoVectors.of(library.uri, f"the contender {comparing[0]}")
    if any(name.startswith(AGENT) for name in names):
        announce(request.choice)
    limits = request.most, request.min_gap_s, request.space
    bench = Bench(library, environment, request.choice, *limits, pictures.embed)
    settings = run_settings(request.benchmark, request.file, bench)
    file = ResultFile(request.out, settings, agent_settings(names, bench))
    results = run_cases(cases, names, bench, file, report, retry_errors=request.retry_errors)
    return MomentRun(benchmark, cases, results)


def run_cases(
    cases: Cases,
    names: Sequence[str],
    bench: Bench,
    results: ResultFile,
    report: Callable[[int, int], object],
    *,
    retry_errors: bool = False,
) -> list[Result]:
    """Solve what the file does not hold yet, or holds of another query, and return the results of all cases.

    Raises a KinodexError for what any other search would meet too, and after several failures in a row; all results
    until then are kept.
    """
    todo = [(name, case) for name in names for case in cases.cases]
    texts = [case.query.text for case in cases.cases if case.query.text]
    if texts and bench.environment.has_vectors:
        bench.environment.source.embed_texts(texts)
    solvers = {name: solver(name, bench) for name in names}
    made_with = agent_settings(names, bench)
    queries = {case.case_id: _query_digest(case) for case in cases.cases}
    batch: Batch[tuple[str, Case]] = Batch(Limits(), "searches", "all results are kept")
    failed = Counter[str]()
    found: list[Result] = []

    def result_of(job: tuple[str, Case]) -> tuple[Result, Exception | None]:
        report(len(found), len(todo))
        name, case = job
        kept, query = results.results.get((name, case.case_id)), queries[case.case_id]
        if kept is not None and kept.query in ("", query) and not (retry_errors and kept.error):
            return kept, None
        result, error = solved(name, solvers[name], case)
        result = replace(result, query=query, made_with=made_with.get(name, {}))
        if not isinstance(error, ModelUnreachable):  # else the next run asks again
            results.add(result)
        return result, error

    def done(job: tuple[str, Case], made: tuple[Result, Exception | None]) -> None:
        (name, case), (result, error) = job, made
        found.append(result)
        if isinstance(error, ModelUnreachable):
            batch.unheard(case.case_id, error)
            return
        if name.startswith(AGENT):
            batch.heard()
        failed[name] = 0 if error is None else failed[name] + 1
        if error is not None and failed[name] >= MOST_FAILED:
            batch.stop(error)

    batch.run(todo, in_turn(result_of), done)
    return found


def solved(name: str, solve: Solve, case: Case) -> tuple[Result, Exception | None]:
    """Solve a case; an error of this search alone is its result. Of an agent any fault may be one search's."""
    ends = ENDS_A_RUN if name.startswith(AGENT) else ENDS_OF_SEARCHES
    try:
        return solve(case), None
    except Exception as error:
        if isinstance(error, ends) or not (name.startswith(AGENT) or isinstance(error, KinodexError)):
            raise
        said = str(error) if isinstance(error, KinodexError) else f"{type(error).__name__}: {error}"
        return Result(case.case_id, name, (), False, error=" ".join(said.split())), error


def run_settings(benchmark: str, file: Path, bench: Bench) -> dict[str, Any]:
    """Return the settings on which results depend: a file of results is for these alone.

    Contenders may be added to it.
    """
    ids = "\n".join(sorted(video.video_id for video in bench.environment.videos))
    added = [f"{each.stage} by {each.model}, {each.rows:,} rows" for each in bench.library.additions.facts()]
    came = sorted((video.video_id, video.ingested_at.isoformat()) for video in bench.library.videos())
    changed = json.dumps([came, str(bench.library.additions.newest_at())])  # contents may change and count the same
    return {
        "benchmark": benchmark,
        "file": file.name,
        "library": bench.library.uri,
        "videos": len(bench.environment.videos),
        "contents": "; ".join([f"videos {_digest(ids.encode())[:12]}", *added]),
        "state": _digest(changed.encode()),
        "space": bench.environment.space,
        "most": bench.most,
        "min_gap_s": bench.min_gap_s,
    }


def agent_settings(names: Sequence[str], bench: Bench) -> dict[str, dict[str, Any]]:
    """Return the further settings of agents: their models, and the code of one that is not kinodex's."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        if name.startswith(AGENT):
            agent = name.removeprefix(AGENT)
            code = {"code": _digest(plugin_source(agent).encode())} if is_plugin(agent) else {}
            found[name] = {"models": describe_models(bench.choice), **code}
    return found


def _query_digest(case: Case) -> str:
    """Digest of what a contender may see of a case: of a picture its content, which another may have replaced."""
    image = None
    if case.query.image is not None:
        try:
            image = _digest(case.query.image.read_bytes())
        except OSError:  # says the search itself
            image = "unreadable"
    return _digest(json.dumps([case.query.text, case.video_id, image]).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
