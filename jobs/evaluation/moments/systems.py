"""Systems that a run of moments compares: searches of a library, grounding by search, and agents by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.environment import Environment
from agent.retrieval.line_matches import AnchorsFrom
from index.library import Library
from index.rows import Hit, Scope, VideoRow
from jobs.errors import UsageError
from jobs.evaluation.moments.cases import Case
from jobs.evaluation.moments.intervals import Found
from jobs.evaluation.moments.pictures import EmbedPicture, query_vector
from jobs.evaluation.moments.results import Result
from jobs.export.moments.moment import Moment
from jobs.ground.ground import Grounding, ground
from jobs.model_choice import ModelChoice
from jobs.run_now import run_now

SEARCHES = ("frames", "words", "captions", "fused")
GROUNDINGS: Mapping[str, AnchorsFrom] = {"ground": "both", "ground-pictures": "pictures", "ground-words": "words"}
AGENT = "agent:"


@dataclass(frozen=True, slots=True)
class Bench:
    """All that systems need: the open library, its videos as agents see them, models, and the number of results."""

    library: Library
    environment: Environment
    choice: ModelChoice
    most: int
    min_gap_s: float
    space: str | None = None
    embed_picture: EmbedPicture | None = None
    """The vector of a picture to search by; None: pictures are not searched by."""


Solve = Callable[[Case], Result]


def check_systems(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of systems, each once; raise UsageError for one that there is not."""
    from agent.variants.registry import find_variant

    for name in names:
        if name.startswith(AGENT):
            find_variant(name.removeprefix(AGENT))
        elif name not in (*SEARCHES, *GROUNDINGS):
            known = ", ".join((*SEARCHES, *GROUNDINGS, "agent:NAME"))
            raise UsageError(f"got the system {name}; there are {known}")
    return tuple(dict.fromkeys(names))


def solver(name: str, bench: Bench) -> Solve:
    """A function from a case to the result of the system of this name; it sees the query alone, and no truth.

    It raises what goes wrong; `jobs.evaluation.moments.run` knows what is of one search alone.
    """
    if name in SEARCHES:
        return lambda case: _searched(name, bench, case)
    if name in GROUNDINGS:
        return lambda case: _grounded(name, bench, case, GROUNDINGS[name])
    return lambda case: _asked(name, bench, case)


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
    found = tuple(_found(bench.library.video(hit.video_id), hit.time_s, hit.time_s) for hit in hits)
    return Result(case.case_id, name, found)


def _grounded(name: str, bench: Bench, case: Case, evidence_from: AnchorsFrom) -> Result:
    videos = [] if case.video_id is None else [bench.library.video(case.video_id)]
    grounding = ground(
        bench.library, bench.environment, case.query.text, videos, most=bench.most, evidence_from=evidence_from
    )
    return _result(case, name, grounding)


def _asked(name: str, bench: Bench, case: Case) -> Result:
    from jobs.ground.by_agent import ground_with

    environment = bench.environment if case.video_id is None else bench.environment.only([case.video_id])
    agent = name.removeprefix(AGENT)
    call = ground_with(bench.library, environment, case.query.text, agent, bench.choice, most=bench.most)
    return _result(case, name, run_now(call))


def _result(case: Case, name: str, grounding: Grounding) -> Result:
    found = tuple(_of_moment(each) for each in grounding.candidates)
    return Result(case.case_id, name, found, grounding.present, grounding.evidence)


def _of_moment(moment: Moment) -> Found:
    return _found(moment.video, moment.start_s, moment.end_s)


def _found(video: VideoRow, start_s: float, end_s: float) -> Found:
    return video.video_id, start_s, end_s
