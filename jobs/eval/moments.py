"""Searches and grounding measured: every contender's ranked moments against the true ones of a benchmark of moments.

A search of the benchmark whose videos the library holds is a case. Each contender solves every case, its results are
kept line by line, and figures of ranked lists, ranges and verdicts are means over the cases.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from kinodex.agent.catalogue import find_variant, is_plugin
from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.plugins import plugin_source
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.errors import KinodexError
from kinodex.index.errors import SpaceError
from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope, VideoRow
from kinodex.jobs.batch import Batch, Limits, in_turn
from kinodex.jobs.errors import UsageError, check_packages
from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.jobs.eval.folder import adapter_of
from kinodex.jobs.eval.items import MissingVideo, MomentBenchmark, MomentQuery, SearchItem, check_own, match_names
from kinodex.jobs.eval.score import Estimate, estimate
from kinodex.jobs.eval.solve import ENDS_A_RUN
from kinodex.jobs.ground import ground, ground_with
from kinodex.jobs.json_files import first_defect
from kinodex.jobs.models import ModelChoice, check_known_world, describe_models, run_now
from kinodex.jobs.open import load_image_tower, open_environment
from kinodex.jobs.pictures import read_picture

ENDS_OF_SEARCHES = tuple(set(ENDS_A_RUN) - {UsageError})
"""What every other search would meet too; an unreadable picture, a `UsageError`, is one search's."""
Found = tuple[str, float, float]
"""A moment that a contender found: the id of a video, and a half-open range in the seconds that a player shows."""
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
    if any(name.startswith(AGENT) for name in names):
        check_known_world(request.choice, environment.source.space, has_pictures=environment.has_pictures)
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
    if texts := [case.query.text for case in cases.cases if case.query.text]:
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
    """The settings on which results depend: a file of results is for these alone. Contenders may be added to it."""
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
    """The further settings of agents: their models, and the code of one that is not kinodex's."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        if name.startswith(AGENT):
            agent = name.removeprefix(AGENT)
            code = {"code": _digest(plugin_source(agent).encode())} if is_plugin(agent) else {}
            found[name] = {MODELS: describe_models(bench.choice), **code}
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


# Searches by a picture: its vector, with that of the words beside it; or the reason why there can be none.
#
# Of a search by both, the query is the mean of both unit vectors, normalised: the baseline "Image + Text" of composed
# retrieval (Saito et al. 2023, "Pic2Word", arXiv 2302.03084, section 4).

READ_PICTURES = ("frames", "fused")
"""Contenders that search by a picture; the others read words alone."""
EmbedPicture = Callable[[Path], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Pictures:
    """`embed` gives the vector of a picture to search by; None where nothing is searched by one.

    `alone` and `beside_words` say why searches by a picture, without words or with them, are left out; "" of others.
    """

    embed: EmbedPicture | None = None
    alone: str = ""
    beside_words: str = ""


def open_pictures(
    library: Library, space: str | None, systems: Sequence[str], samples: Sequence[SearchItem]
) -> Pictures:
    """Load the image tower of the space, by torch or as the library carries it, if there is a picture to search by.

    Contenders are compared on the same searches: those by a picture alone are left out if one reads words alone.
    """
    blind = [name for name in systems if name not in READ_PICTURES]
    if not any(sample.image for sample in samples):
        return Pictures()
    able = " and ".join(f"--contender {name}" for name in READ_PICTURES)
    alone = f"a picture without text, which {', '.join(blind)} cannot search for; {able} can" if blind else ""
    if len(blind) == len(systems):
        return Pictures(alone=alone)
    try:
        tower = load_image_tower(library, space)
    except SpaceError as error:
        reason = f"skipped for its picture, which cannot be embedded: {error}"
        return Pictures(alone=reason, beside_words=reason)

    def embed(path: Path) -> NDArray[np.float32]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}; put the picture there again") from error
        vector: NDArray[np.float32] = tower.embed(tower.prepare(read_picture(content))[None])[0]
        return vector

    return Pictures(embed, alone)


def query_vector(
    query: MomentQuery, embed_text: Callable[[str], NDArray[np.float32]], embed_picture: EmbedPicture | None
) -> NDArray[np.float32]:
    """The unit vector `[dim]` of a query's words, its picture, or both; raises UsageError for an unreadable picture."""
    if query.image is None or embed_picture is None:
        return embed_text(query.text)
    picture = embed_picture(query.image)
    if not query.text:
        return picture
    both = picture + embed_text(query.text)
    vector: NDArray[np.float32] = (both / np.linalg.norm(both)).astype(np.float32)
    return vector


# Cases: the searches whose videos a library holds, with their true moments by video id.

WORDS_ALONE = Pictures(alone="a picture without text")
SEVERAL = "several videos of the library have its video's name"


@dataclass(frozen=True, slots=True)
class Case:
    """A search with its truth. `query` and `video_id` are all that a contender may see; None: the whole library.

    `relevant` names videos by id, or by the benchmark's name where the library lacks one: such a moment counts as
    missed. `cluster` is the video by which errors are clustered.
    """

    case_id: str
    query: MomentQuery
    video_id: str | None
    relevant: tuple[Found, ...]
    grades: tuple[float, ...]
    absent: bool
    category: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a run, videos that the library lacks or cannot tell apart, and searches left out, by reason."""

    cases: tuple[Case, ...]
    missing: tuple[MissingVideo, ...]
    left_out: Mapping[str, int]
    ambiguous: Collection[str] = ()


def make_cases(
    samples: Sequence[SearchItem],
    videos: Sequence[VideoRow],
    limit: int | None = None,
    pictures: Pictures = WORDS_ALONE,
) -> Cases:
    """Match the items with a library's videos; `limit` keeps the first so many that can be searched.

    Raises UsageError if nothing is left.
    """
    matches = match_names(Counter(name for sample in samples for name in sample.videos), videos, None)
    ids = {name: found[0] for name, found in matches.videos.items()}
    reasons = [_left_out(sample, ids, matches.ambiguous, pictures) for sample in samples]
    cases = tuple(_case(sample, ids) for sample, reason in zip(samples, reasons, strict=True) if not reason)
    left_out = Counter(filter(None, reasons))
    if not cases:
        said = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
        raise UsageError(f"none of {len(samples):,} searches can be scored ({said}); ingest their videos")
    return Cases(cases[:limit], matches.missing, dict(left_out), matches.ambiguous)


def _left_out(sample: SearchItem, ids: Mapping[str, str], ambiguous: Collection[str], pictures: Pictures) -> str:
    if not sample.known:
        return "moments not published"
    if sample.image and (reason := pictures.beside_words if sample.text else pictures.alone):
        return reason
    if sample.video is not None and sample.video not in ids:
        return SEVERAL if sample.video in ambiguous else "its video is not in the library"
    if sample.relevant and not any(video in ids for video, _, _ in sample.relevant):
        return "no video of its moments is in the library"
    return ""


def _case(sample: SearchItem, ids: Mapping[str, str]) -> Case:
    relevant = tuple((ids.get(video, video), start_s, end_s) for video, start_s, end_s in sample.relevant)
    return Case(
        case_id=sample.item_id,
        query=sample.query,
        video_id=None if sample.video is None else ids[sample.video],
        relevant=relevant,
        grades=sample.grades or (1.0,) * len(relevant),
        absent=sample.absent,
        category=sample.category or "",
        cluster=sample.video or (sample.relevant[0][0] if sample.relevant else f"none/{sample.item_id}"),
    )


# Contenders: searches of a library, grounding by search, and agents by name.

SEARCHES = ("frames", "words", "captions", "fused")
GROUNDINGS: Mapping[str, AnchorsFrom] = {"ground": "all", "ground-frames": "frames", "ground-words": "words"}
AGENT = "agent:"


@dataclass(frozen=True, slots=True)
class Bench:
    """All that contenders need: the open library, its videos as agents see them, models, and the number of results."""

    library: Library
    environment: Environment
    choice: ModelChoice
    most: int
    min_gap_s: float
    space: str | None = None
    embed_picture: EmbedPicture | None = None
    """The vector of a picture to search by; None: pictures are not searched by."""


Solve = Callable[[Case], "Result"]


def check_contenders(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of contenders, each once; raise UsageError for one that there is not."""
    for name in names:
        if name.startswith(AGENT):
            find_variant(name.removeprefix(AGENT))
        elif name not in (*SEARCHES, *GROUNDINGS):
            known = ", ".join((*SEARCHES, *GROUNDINGS, "agent:NAME"))
            raise UsageError(f"got the contender {name}; there are {known}")
    return tuple(dict.fromkeys(names))


def solver(name: str, bench: Bench) -> Solve:
    """A function from a case to the result of the contender of this name; it sees the query alone, and no truth."""
    return partial(_searched if name in SEARCHES else _grounded, name, bench)


def _searched(name: str, bench: Bench, case: Case) -> Result:
    search, text = bench.library.search, case.query.text
    scope = Scope() if case.video_id is None else Scope((case.video_id,))
    limits = scope, bench.most, bench.min_gap_s
    hits: list[Hit]
    if name == "words":
        hits = search.words(text, *limits, bench.library.sentences.meaning(text))
    elif name == "captions":
        hits = search.captions(text, bench.environment.embed_text(text) if bench.space is None else None, *limits)
    else:
        vector = query_vector(case.query, bench.environment.embed_text, bench.embed_picture)
        if name == "frames" or not text:
            hits = search.frames(vector, *limits, bench.space)
        else:
            meaning = bench.library.sentences.meaning(text)
            hits = search.hybrid(text, vector, *limits, bench.space, meaning)
    # A hit is the moment at which it begins: a caption of a long segment is no longer find than a frame.
    found = tuple((bench.library.video(hit.video_id).video_id, hit.time_s, hit.time_s) for hit in hits)
    return Result(case.case_id, name, found)


def _grounded(name: str, bench: Bench, case: Case) -> Result:
    text, environment = case.query.text, bench.environment
    if name in GROUNDINGS:
        videos = [] if case.video_id is None else [bench.library.video(case.video_id)]
        evidence = GROUNDINGS[name]
        found = ground(bench.library, environment, text, videos, most=bench.most, in_=evidence)
    else:
        environment = environment if case.video_id is None else environment.only([case.video_id])
        agent = name.removeprefix(AGENT)
        found = run_now(ground_with(bench.library, environment, text, agent, bench.choice, most=bench.most))
    ranges = tuple((each.video.video_id, each.start_s, each.end_s) for each in found.candidates)
    return Result(case.case_id, name, ranges, found.present, found.evidence)


# The file of results: a first line with the settings of the run, then a line of JSON for each search and contender.
#
# A run that stopped anywhere goes on where it stopped: a line that was not written whole is dropped, and settings that
# differ are refused. Those of one contender, such as the models of an agent, stand with each result, so that contenders
# can be added. Of two lines for one search and contender the later counts.

FORMAT = 1
SINCE_KEPT = ("contents", "state")
"""Settings that files of older versions do not have."""
MODELS = "models"
"""The setting of agents that older versions kept in the first line."""


@dataclass(frozen=True, slots=True)
class Result:
    """The finds of a contender for a search, best first; `present` and `evidence` are None of one without verdicts.

    `error` is the reason why a contender gave nothing, "" if it did. `query` is the digest of what was searched for, ""
    in files of versions that did not keep it. `made_with` are the settings of this contender alone.
    """

    case_id: str
    system: str
    found: tuple[Found, ...]
    present: bool | None = None
    evidence: float | None = None
    error: str = ""
    query: str = ""
    made_with: Mapping[str, Any] = field(default_factory=dict)


class ResultFile:
    """Results in a file, or in memory alone without one."""

    def __init__(
        self, path: Path | None, settings: Mapping[str, Any], of_systems: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Open the file of a run of these settings, or begin it; `of_systems` are further ones by contender.

        Raises UsageError for results of other settings.
        """
        self._path = path
        self.results: dict[tuple[str, str], Result] = {}
        head = {"kinodex_moments": FORMAT, **settings}
        if path is None:
            return
        own = of_systems or {}
        try:
            if not path.exists() or not self._read(path, head, own):
                path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; give another file") from error
        for result in self.results.values():
            _check_made_with(path, result, own.get(result.system, {}))

    def add(self, result: Result) -> None:
        """Keep a result, in the file at once."""
        self.results[result.system, result.case_id] = result
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")

    def _read(self, path: Path, head: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]]) -> bool:
        """Read the results of a run of these settings; False of a file in which there is nothing yet."""
        content = path.read_bytes()
        whole, _, rest = content.decode("utf-8", "replace").rpartition("\n")
        if not whole and json.dumps(head).startswith(rest):  # empty, or stopped in its first line
            return False
        lines = whole.split("\n")
        written = _checked_head(path, lines[0], head)
        older = {MODELS: written[MODELS]} if MODELS in written else {}
        for number, line in enumerate(lines[1:], start=2):
            result = _read_result(path, number, line)
            if result.system in own:
                result = replace(result, made_with={**older, **result.made_with})
            self.results[result.system, result.case_id] = result
        if rest:  # cut off in place: results before it are paid for, and never written again
            os.truncate(path, content.rindex(b"\n") + 1)
        return True


def _checked_head(path: Path, line: str, head: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parse the first line; raise UsageError unless it has the settings of this run."""
    try:
        written = json.loads(line)
    except json.JSONDecodeError:
        written = None
    if not isinstance(written, dict) or written.get("kinodex_moments") != FORMAT:
        raise UsageError(f"{path} is no result file of `kinodex eval`; give a new file")
    keys = [key for key in {**written, **head} if key != MODELS and (key in written or key not in SINCE_KEPT)]
    other = next((key for key in keys if written.get(key) != head.get(key)), None)
    if other is not None:
        raise UsageError(
            f"{path} has results with {other} {written.get(other)}, and this run has {head.get(other)}; give a new file"
        )
    return written


def _check_made_with(path: Path, result: Result, now: Mapping[str, Any]) -> None:
    """Refuse a result that the same contender gave with other settings of its own; an older one does not say all."""
    other = next((key for key in now if key in result.made_with and result.made_with[key] != now[key]), None)
    if other is not None:
        raise UsageError(
            f"{path} has results of {result.system} with {other} {result.made_with[other]}, and this run has "
            f"{now[other]}; give a new file"
        )


def _read_result(path: Path, number: int, line: str) -> Result:
    try:
        result: Result = adapter_of(Result).validate_json(line)
    except ValidationError as error:
        raise UsageError(
            f"{path} is damaged in line {number}: {first_defect(error)}; take the line out, and its search runs again, "
            "or give a new file"
        ) from error
    return result


# Standings: each contender over all searches, with errors clustered by video.

RANKS = (1, 5, 10)
NDCG_RANK = 10
IOUS = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True)
class Standing:
    """Means over the `searches` of one contender; `plain` figures have no error, `failures` are the worst searches."""

    system: str
    searches: int
    figures: Mapping[str, Estimate]
    plain: Mapping[str, float | None]
    failures: tuple[str, ...]
    errors: int


Pairs = list[tuple[Case, Result]]


def search_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score ranked results at the level of moments, and of videos for searches of the whole library.

    Searches of what is nowhere have no right result, and are left out.
    """
    return [_search_standing(name, pairs) for name, pairs in _by_system(cases, results, absent=False).items()]


def _search_standing(name: str, pairs: Pairs) -> Standing:
    gains = [moment_gains(result.found, case.relevant, case.grades) for case, result in pairs]
    figures = _ranked("moment", gains, [case.grades for case, _ in pairs], pairs)
    if whole := [pair for pair in pairs if pair[0].video_id is None]:
        of_videos = [video_gains(result.found, case.relevant, case.grades) for case, result in whole]
        worths = [list(video_worths(case.relevant, case.grades).values()) for case, _ in whole]
        figures |= _ranked("video", of_videos, worths, whole)
    failures = tuple(pair[0].case_id for pair, each in zip(pairs, gains, strict=True) if not any(each[: RANKS[-1]]))
    return Standing(name, len(pairs), figures, {}, failures, _errors(pairs))


def _ranked(
    level: str, gains: Sequence[Sequence[float]], ideals: Sequence[Sequence[float]], pairs: Pairs
) -> dict[str, Estimate]:
    lists = list(zip(gains, ideals, strict=True))
    figures = {f"{level} R@{k}": _mean([recall_at(each, k) for each in gains], pairs) for k in RANKS}
    figures[f"{level} mAP"] = _mean([average_precision(*each) for each in lists], pairs)
    figures[f"{level} nDCG@{NDCG_RANK}"] = _mean([ndcg_at(*each, NDCG_RANK) for each in lists], pairs)
    return figures


def ground_standings(cases: Sequence[Case], results: Sequence[Result]) -> list[Standing]:
    """Score the first range of each event that is there, and the verdicts on all.

    A range counts whether or not the contender said that the event is there: that is scored by `misses` and `false
    alarms`, their mean `balanced accuracy`, and, of contenders that give evidence, by AUROC. A search that failed said
    neither: it counts as wrong.
    """
    there, nowhere = _by_system(cases, results, absent=False), _by_system(cases, results, absent=True)
    names = dict.fromkeys(each.system for each in results)
    return [
        _ground_standing(name, there.get(name, []), nowhere.get(name, [])) for name in names if name in there | nowhere
    ]


def _ground_standing(name: str, there: Pairs, nowhere: Pairs) -> Standing:
    ious = [best_iou(next(iter(result.found), None), case.relevant) for case, result in there]
    figures = {f"R@1 IoU {least:g}": _mean([float(each >= least) for each in ious], there) for least in IOUS}
    figures["mIoU"] = _mean(ious, there)
    plain: dict[str, float | None] = {}
    if all(result.present is not None for _, result in (*there, *nowhere)):
        figures["misses"] = _mean([float(not each.present or bool(each.error)) for _, each in there], there)
        figures["false alarms"] = _mean([float(bool(each.present or each.error)) for _, each in nowhere], nowhere)
        wrong = figures["misses"].mean, figures["false alarms"].mean
        plain["balanced accuracy"] = 1.0 - math.fsum(wrong) / 2 if there and nowhere else None
    evidence = [[each.evidence for _, each in part if each.evidence is not None] for part in (there, nowhere)]
    plain["AUROC"] = auroc(*evidence)
    failures = tuple(case.case_id for (case, _), value in zip(there, ious, strict=True) if value < IOUS[0])
    return Standing(name, len(there) + len(nowhere), figures, plain, failures, _errors((*there, *nowhere)))


def _by_system(cases: Sequence[Case], results: Sequence[Result], *, absent: bool) -> dict[str, Pairs]:
    """The cases of which something is, or is not, there, with the results of each contender for them."""
    known = {case.case_id: case for case in cases if case.absent is absent}
    found: dict[str, Pairs] = {}
    for result in results:
        if result.case_id in known:
            found.setdefault(result.system, []).append((known[result.case_id], result))
    return found


def _mean(values: Sequence[float], pairs: Pairs) -> Estimate:
    return estimate(values, [case.cluster for case, _ in pairs], 0.0, 1.0)


def _errors(pairs: Iterable[tuple[Case, Result]]) -> int:
    return sum(bool(result.error) for _, result in pairs)


def by_category(
    cases: Sequence[Case],
    results: Sequence[Result],
    standings: Callable[[Sequence[Case], Sequence[Result]], list[Standing]],
) -> dict[str, list[Standing]]:
    """The standings of each category of searches, in the order of the file; empty if there are fewer than two."""
    parts: dict[str, list[Case]] = {}
    for case in cases:
        parts.setdefault(case.category, []).append(case)
    return {name: standings(part, results) for name, part in parts.items()} if len(parts) > 1 else {}


# Figures of one ranked list: R@k, average precision and nDCG, as information retrieval defines them.
#
# `gains` are the worths of the results in the order in which a search gave them, 0 for one that is not relevant;
# `ideal` are the worths of all that is relevant, found or not. What was not found counts as nothing at the end of the
# list. Equal scores keep the order of the search, which breaks ties by video and time.


def moment_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each result in order: that of the true range in which its middle lies, once for each range.

    A further result in a range that was found before is passed over. Where true ranges overlap, the first that was not
    found before counts.
    """
    left = dict(enumerate(relevant))
    gains = []
    for each in found:
        inside = [number for number, target in enumerate(relevant) if _holds(target, each)]
        new = next((number for number in inside if number in left), None)
        if new is not None:
            del left[new]
            gains.append(grades[new])
        elif not inside:
            gains.append(0.0)
    return gains


def video_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each video in the order of its first result: the greatest worth of its true ranges, 0 without one."""
    worth = video_worths(relevant, grades)
    return [worth.get(video, 0.0) for video in dict.fromkeys(video for video, _, _ in found)]


def video_worths(relevant: Sequence[Found], grades: Sequence[float]) -> dict[str, float]:
    """The greatest worth of a true range of each video that has any."""
    worth: dict[str, float] = {}
    for (video, _, _), grade in zip(relevant, grades, strict=True):
        worth[video] = max(grade, worth.get(video, 0.0))
    return worth


def _holds(target: Found, found: Found) -> bool:
    middle_s = (found[1] + found[2]) / 2
    return target[0] == found[0] and target[1] <= middle_s < target[2]


def recall_at(gains: Sequence[float], k: int) -> float:
    """1 if something relevant is among the first `k` results: R@k of text-to-video retrieval (arXiv 2001.09099)."""
    return float(any(gain > 0 for gain in gains[:k]))


def average_precision(gains: Sequence[float], ideal: Sequence[float]) -> float:
    """Mean of the precision at the rank of each relevant result, 0 for those not found: `map` of `trec_eval`."""
    relevant = sum(gain > 0 for gain in ideal)
    found, total = 0, 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def ndcg_at(gains: Sequence[float], ideal: Sequence[float], k: int) -> float:
    """Discounted gain of the first `k` results over that of the best possible list: `ndcg_cut` of `trec_eval`.

    Gains are the grades themselves, the discount log2(rank + 1) (Jarvelin and Kekalainen 2002, ACM TOIS 20).
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best > 0 else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


# Figures of ranges of time, and of the verdict that an event is there.


def iou(one: Found, other: Found) -> float:
    """Shared time of two ranges over the time that they cover together; 0 in two videos."""
    shared_s = min(one[2], other[2]) - max(one[1], other[1])
    if one[0] != other[0] or shared_s <= 0:
        return 0.0
    return shared_s / (max(one[2], other[2]) - min(one[1], other[1]))


def best_iou(found: Found | None, relevant: Sequence[Found]) -> float:
    """IoU of a range with the true one that it fits best; 0 for none."""
    return 0.0 if found is None else max((iou(found, each) for each in relevant), default=0.0)


def auroc(present: Sequence[float], absent: Sequence[float]) -> float | None:
    """Chance that an event that is there has more evidence than one that is not, half for equal ones: the ROC area."""
    if not present or not absent:
        return None
    above = sum((one > other) + 0.5 * (one == other) for one in present for other in absent)
    return above / (len(present) * len(absent))
