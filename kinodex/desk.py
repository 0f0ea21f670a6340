"""The desk: it carries out the requests of every face about one library.

    desk = Desk(Library.open("lib"), ModelChoice("gpt-4o"))
    hits = desk.find(Find(query="a red boat")).hits
    answer = run_now(desk.ask(Ask(question="What colour is the boat?")))

A face reads its own input into a request (`kinodex.requests`), calls the desk and shows the result. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.agent.limits.budget import UNLIMITED
from kinodex.all_films import collection_request, library_to_fill
from kinodex.environments import Environments
from kinodex.index.errors import NoVectors
from kinodex.index.kinds import ALL, KINDS
from kinodex.index.rows import Hit
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, check_sight, chosen_models
from kinodex.questions import question_for, question_of
from kinodex.requests import Ask, Films, Find, Ground
from kinodex.runs import RUN, Run, watched
from kinodex.search.finder import Finder
from kinodex.search.places import ground_place

if TYPE_CHECKING:
    from kinodex.agent.answer import Answer
    from kinodex.agent.protocol.exchange import Models
    from kinodex.agent.requests.collection import CollectionPlan
    from kinodex.agent.traces.prior_evidence import PriorEvidence
    from kinodex.agent.variants.base import Variant
    from kinodex.agent.videos.environment import Environment
    from kinodex.agent.videos.library_videos import AnchorsFrom
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.collection.answer import CollectionAnswer
    from kinodex.jobs.costs import Forecast
    from kinodex.jobs.grounding.result import Grounding
    from kinodex.jobs.verification.look import Look, Looked
    from kinodex.search.pictures import Picture

USUAL_AGENT, ALL_FILMS = "kino", "all"


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a search, best first, and what a reader of them should know beside."""

    hits: list[Hit]
    notes: tuple[str, ...] = ()
    """What was not searched or not compared, and why."""
    looked: Looked | None = None
    """The calls of the model that looked, where one did."""


class Desk:
    """Requests about one library, carried out in the thread that calls.

    `models` are a choice to open for each question, or models that are open; None: `similarity`. `finder` replaces
    the desk's own, `look` how a model looks at hits (as `verified` does): a server has limits of its own.
    Clients of a server, with `is_local` False, may not name an agent's file: its code would run here.
    """

    def __init__(
        self,
        library: LibraryReader,
        models: ModelChoice | Models | None = None,
        *,
        space: str | None = None,
        detector: str | None = None,
        agent: str | Variant = USUAL_AGENT,
        finder: Finder | None = None,
        look: Look | None = None,
        is_local: bool = True,
    ) -> None:
        self.library = library
        self.models = ModelChoice() if models is None else models
        self.space = space
        self.agent = agent
        """The agent of a question that names none."""
        self.finder = finder or Finder(library, space)
        self._look = look
        self._is_local = is_local
        self._environments = Environments(library, self.finder, detector)

    def find(self, request: Find, picture: Picture | None = None) -> Found:
        """Find moments by words, beside them or instead of them by a picture or a vector.

        Raises UsageError, QueryError, SpaceError, UnknownVideo, or a ModelError of a reranker or of a model that looks.
        """
        self.check_added(request.in_)
        hits = self.finder.find(request, picture)
        notes = tuple(self._notes(request, hits))
        if not request.verify:
            return Found(hits, notes)
        hits, looked = self._looked_at(request.query, hits, request.verify)
        return Found(hits, notes, looked)

    def ground(self, request: Ground) -> Grounding:
        """Find the ranges that fit a text best, by search or by an agent, padded and joined as the request says."""
        from kinodex.jobs.export.moment_rule import MomentRule
        from kinodex.jobs.grounding.result import arranged_by, with_verdicts
        from kinodex.jobs.models import run_now

        place = ground_place(request.in_)
        rule = MomentRule(request.pad_s, request.join_s, request.snap)
        if request.agent is not None:
            found = run_now(self.ground_by_agent(request))
            return arranged_by(rule, found, self.library.segments)
        if request.budget != UNLIMITED:
            raise UsageError("got a budget, and no agent that could keep to it; give an agent, or leave it out")
        found = arranged_by(rule, self._grounded(request, place), self.library.segments)
        if not request.verify:
            return found
        judged, looked = self._looked_at(request.text, found.candidates, request.verify)
        return replace(with_verdicts(found, judged), looked=looked)

    async def ground_by_agent(self, request: Ground, run: Run = RUN) -> Grounding:
        """Ask an agent when a text is seen; the evidence of its answer is the ranges."""
        from kinodex.jobs.grounding.agent import grounding_of

        asked = question_for(request)
        answer = await self.ask(asked, run)
        return grounding_of(self.library, request.text, answer, self.variant(asked).name, request.k)

    def check_added(self, place: str) -> None:
        """Raise UsageError where a search finds nothing because the kind was never added."""
        if self.finder.missing(place):
            raise UsageError(
                f"{self.library.uri} has no {KINDS[place].label}; `kinodex add {place}` makes it from what the library "
                "holds"
            )

    def _grounded(self, request: Ground, place: AnchorsFrom) -> Grounding:
        from kinodex.jobs.grounding.search import ground

        among = self.library.where(request.where)
        rows = among.videos_named(request.videos) if request.videos else []
        return ground(
            among, self._environments.of(among, among.videos()), request.text, rows, most=request.k, in_=place
        )

    def _looked_at(self, text: str, found: Sequence[Any], count: int) -> tuple[list[Any], Looked]:
        from kinodex.jobs.verification.look import verified

        if self._look is not None:
            return self._look(self.library, text, found, count)
        return verified(self.library, text, found, count, self.models)

    def _notes(self, request: Find, hits: Sequence[Hit]) -> Iterator[str]:
        if request.rerank and hits and all(hit.reranked is None for hit in hits):
            yield "no hit has words for the reranker to compare: their order is as before"
        if (unknown := self.finder.unsearched(request)) is not None:
            yield f"pictures are not compared with the words: {unknown}"
        if not hits and request.in_ == ALL and not self.finder.fingerprint.has_vectors:
            yield str(NoVectors.of(self.library.uri))
        if self.finder.clips_missing:
            yield f"clips are not searched: {self.finder.clips_missing}"
        if self.library.sentences.missing:
            yield f"lines are found by words alone: {self.library.sentences.missing}"

    async def ask(self, request: Ask, run: Run = RUN) -> Answer:
        """Answer a question, and write its trace meanwhile.

        Bad replies and spent budgets do not raise: they are the answer's status. Raises UsageError or an AgentError for
        a request that makes no sense, and a ModelError where a model cannot be reached.
        """
        from kinodex.agent.ask import ask

        variant, question = self.variant(request), question_of(request)
        if variant.name == ALL_FILMS:
            return await asyncio.to_thread(self.ask_all, request, run)
        _check_traces(request, run)
        await asyncio.to_thread(self.finder.load)  # which takes seconds where torch does it
        environment = self.environment(request)
        with watched(run, self.library.uri) as on_event:
            async with self._opened(environment, variant, run) as models:
                return await ask(
                    question,
                    environment,
                    models,
                    agent=variant,
                    parameters=request.settings,
                    budget=request.budget,
                    rules=request.rules,
                    seen=_seen(request, environment),
                    on_event=on_event,
                    stop=run.stop,
                )

    def ask_all(self, request: Ask, run: Run = RUN) -> CollectionAnswer:
        """Answer a question by looking at each film that may matter; raises as `ask_collection` does."""
        from kinodex.jobs.collection.question import ask_collection

        asked = collection_request(request, self.models, run.stop)
        with watched(run, self.library.uri) as on_event:
            return ask_collection(library_to_fill(self.library, request), replace(asked, on_event=on_event))

    async def ask_many(self, requests: Sequence[Ask], at_once: int) -> list[Answer]:
        """Answer questions with the same films, agent and limits, at most `at_once` together; in their order."""
        from kinodex.jobs.ask_many import Task, ask_many

        if not requests:
            return []
        first = requests[0]
        environment, variant = self.environment(first), self.variant(first)
        async with self._opened(environment, variant) as models:
            common = (environment, models, variant, first.settings, first.budget, first.rules)
            return await ask_many([Task(question_of(each), *common) for each in requests], at_once)

    def check(self, request: Ask) -> Variant:
        """Return the agent of a request; raises what asking it would raise before a model is asked."""
        from kinodex.agent.variants.settings import with_settings

        variant = self.variant(request)
        question_of(request)
        rows = self.videos(request)
        if not rows:
            raise UsageError("the library holds no video to ask about; ingest one first")
        self._check_models(variant)
        if isinstance(self.models, ModelChoice):
            from kinodex.agent.catalogue import check_fit

            unpictured = [row.title for row in rows if not row.frames]
            without = "" if self.finder.fingerprint.has_vectors else self.library.uri
            check_fit(variant, has_language=self.models.has_language, unpictured=unpictured, without_vectors=without)
        with_settings(variant.parameters(max(row.duration_s for row in rows)), request.settings)
        return variant

    def variant(self, request: Ask) -> Variant:
        """Return the agent of a request, or the desk's own where it names none."""
        from kinodex.agent.catalogue import find_variant, variant_named

        own = find_variant(self.agent)
        if request.agent is None or request.agent == own.name:
            return own
        if request.agent == ALL_FILMS:
            from kinodex.jobs.collection.question import ALL

            return ALL
        return find_variant(request.agent) if self._is_local else variant_named(request.agent)

    def videos(self, films: Films) -> Sequence[VideoRow]:
        """Return the rows of the videos of a request; those of all of the library if it names none."""
        among = self.library.where(films.where)
        return among.videos_named(films.videos) if films.videos else among.videos()

    def environment(self, films: Films) -> Environment:
        """Return what agents may see of the videos of a request; the last few stay in memory."""
        return self._environments.of(self.library.where(films.where), self.videos(films))

    def left_out(self, request: Ask) -> str | None:
        """Say that an agent looks at some of the videos, chosen by search; None where it looks at all."""
        return videos_left_out(self.variant(request), request.settings, len(self.videos(request)))

    def forecast(self, request: Ask | Find | Ground) -> Sequence[Forecast]:
        """Return the calls, frames, tokens and money that a request would cost; nothing is sent."""
        from kinodex.jobs.forecast import forecast_question
        from kinodex.jobs.verification.look import forecast_verdicts

        assert isinstance(self.models, ModelChoice), "model objects have no prices"
        if isinstance(request, Find):
            hits = self.finder.find(request)
            return [forecast_verdicts(self.library, request.query, hits, request.verify, self.models)]
        if isinstance(request, Ground):
            found = self._grounded(request, ground_place(request.in_)).candidates
            return [forecast_verdicts(self.library, request.text, found, request.verify, self.models)]
        variant, environment = self.check(request), self.environment(request)
        seen = _seen(request, environment)
        asked = question_of(request), environment, self.models, variant, request.settings, request.budget, request.rules
        return [forecast_question(*asked, seen)]

    def bill(self, request: Ask) -> tuple[CollectionPlan, str, list[VideoRow], list[Forecast]]:
        """Return the plan of a question to all films, where it is from, the films and the costs; nothing is asked."""
        from kinodex.jobs.collection.question import bill

        return bill(library_to_fill(self.library, request), collection_request(request, self.models))

    def _check_models(self, variant: Variant) -> None:
        """Raise UsageError for a choice of models that cannot see what the agent shows it."""
        if not isinstance(self.models, ModelChoice):
            return
        check_sight(self.models, variant)

    @asynccontextmanager
    async def _opened(self, environment: Environment, variant: Variant, run: Run = RUN) -> AsyncIterator[Models]:
        if run.models is not None:
            yield run.models(environment)
            return
        if not isinstance(self.models, ModelChoice):
            yield self.models
            return
        self._check_models(variant)
        async with chosen_models(self.models) as models:
            yield models(environment)


def videos_left_out(variant: Variant, settings: Mapping[str, Any], count: int) -> str | None:
    """Say that an agent looks at some of this many videos; None where it looks at all."""
    from kinodex.agent.variants.settings import with_settings

    most = getattr(with_settings(variant.parameters(0.0), settings), "videos", None)
    if not isinstance(most, int) or count <= most:
        return None
    return f"of {count:,} videos the {most} that fit the question best, by a search, are looked at"


def _seen(request: Ask, environment: Environment) -> PriorEvidence | None:
    from kinodex.agent.traces.prior_evidence import read_prior_evidence

    return None if request.follow_up is None else read_prior_evidence(Path(request.follow_up), environment)


def _check_traces(request: Ask, run: Run) -> None:
    if run.trace is None or request.follow_up is None:
        return
    if run.trace.resolve() == Path(request.follow_up).resolve():
        raise UsageError(f"got {run.trace} for both trace and follow_up, which would overwrite it; give a new file")
