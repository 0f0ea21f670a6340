"""Contenders: searches of a library, grounding by search, and agents by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kinodex.agent.catalogue import find_variant
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.moments.cases import Case
from kinodex.jobs.eval.moments.query_pictures import EmbedPicture, query_vector
from kinodex.jobs.eval.moments.results import Result
from kinodex.jobs.grounding.agent import ground_with
from kinodex.jobs.grounding.search import ground
from kinodex.jobs.models import ModelChoice, run_now

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
    """Return a function from a case to the result of the contender of this name.

    It sees the query alone, and no truth.
    """
    return partial(_search_with if name in SEARCHES else _ground_with, name, bench)


def _search_with(name: str, bench: Bench, case: Case) -> Result:
    search, text = bench.library.search, case.query.text
    scope = Scope() if case.video_id is None else Scope((case.video_id,))
    limits = scope, bench.most, bench.min_gap_s
    hits: list[Hit]
    if name == "words":
        hits = search.words(text, *limits, bench.library.sentences.meaning(text))
    elif name == "captions":
        in_own = bench.space is None and bench.environment.has_vectors
        known = in_own and bench.environment.source.knows(text)
        hits = search.captions(text, bench.environment.embed_text(text) if known else None, *limits)
    else:
        vector = query_vector(case.query, bench.environment.embed_text, bench.embed_picture)
        compared = vector if vector.any() else None
        if name == "frames" or not text:
            hits = [] if compared is None else search.frames(compared, *limits, bench.space)
        else:
            meaning = bench.library.sentences.meaning(text)
            hits = search.hybrid(text, compared, *limits, bench.space, meaning)
    # A hit is the moment at which it begins: a caption of a long segment is no longer find than a frame.
    found = tuple((bench.library.video(hit.video_id).video_id, hit.time_s, hit.time_s) for hit in hits)
    return Result(case.case_id, name, found)


def _ground_with(name: str, bench: Bench, case: Case) -> Result:
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
