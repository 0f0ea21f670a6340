"""The questions of a server: begun within its limits, answered in a thread of their own, kept as traces."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.answer import Answer
from agent.ask_questions import ask
from agent.core.budget import Budget
from agent.trace.events import Event
from agent.trace.followup import read_prior_evidence
from agent.trace.trace import Record, trace_to
from agent.variants.base import Variant, with_settings
from agent.variants.registry import check_fit
from index.errors import KinodexError
from index.library import Library
from index.redact import redact_uri
from index.rows import VideoRow
from jobs.errors import UsageError
from jobs.model_choice import check_known_world
from jobs.open_library import find_space
from jobs.serve.asking_thread import AskingThread
from jobs.serve.day_money import spend, spent_today, until_tomorrow_s
from jobs.serve.environments import Environments
from jobs.serve.kept_traces import Kept, KeptTraces, QuestionFacts
from jobs.serve.metrics import Tally
from jobs.serve.offer import offer
from jobs.serve.running import AskRequest, Running
from jobs.serve.settings import ServeSettings
from jobs.viewer.api import NotGiven
from pipeline.errors import PipelineError

RETRY_S = 10.0
LISTED = 200
"""Questions that a list shows, newest first."""
MONEY_SPENT = "the money of the day"


class TooManyQuestions(KinodexError):
    """As many questions are under way as the server allows; `retry_s` is when to try again."""

    retry_s = RETRY_S


class MoneySpent(KinodexError):
    """The questions of today have cost as much as they may; `retry_s` is when the next day begins."""

    def __init__(self, message: str, retry_s: float) -> None:
        super().__init__(message)
        self.retry_s = retry_s


class QuestionFault(KinodexError):
    """A fault of the program ended a question: its traceback is on the server's terminal, not on the wire."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request that was checked: agent, parameters, videos and the trace that it follows."""

    variant: Variant
    parameters: Any
    rows: tuple[VideoRow, ...]
    follows: Path | None
    whole: bool
    """True if it is about all videos of the library, those that come later too."""


class Questions:
    """All questions about some libraries. `start`, `find` and `listing` belong to the thread of those libraries.

    Raises what opening the models or the folder of traces raises.
    """

    def __init__(self, libraries: Sequence[Library], settings: ServeSettings) -> None:
        self.settings = settings
        self.tally = Tally()
        self._libraries = tuple(libraries)
        uris = [library.uri for library in libraries]
        self.kept = KeptTraces(settings.traces, uris)
        self._environments = Environments(uris, settings.detector, settings.space)
        self._running: dict[str, Running] = {}
        self._thread = AskingThread(settings.choice)

    def start(self, request: AskRequest) -> Running:
        """Begin to answer a question.

        Raises TooManyQuestions or MoneySpent at a limit, and a KinodexError for a request that makes no sense.
        """
        plan = self._plan(request)
        budget = self._budget(request.budget)
        running = Running(self.kept.new_key(), request, datetime.now(UTC))
        self.kept.save(request.library, self._facts(running, plan))
        self._running[running.key] = running
        self._thread.submit(lambda: self._answer(running, plan, budget))
        return running

    def find(self, key: str) -> Running | Kept:
        """A question by its key; raises NotGiven."""
        return self._running.get(key) or self.kept.find(key)

    def listing(self, library: int) -> list[dict[str, Any]]:
        """Questions about a library as the page lists them, newest first; also those asked before a restart."""
        self._library(library)
        rows, before = [], dict(self._running)
        for kept in self.kept.listing(library)[:LISTED]:
            running = self._running.get(kept.key)
            if running is None and kept.key in before:  # it has ended since its facts were read
                kept = self.kept.find(kept.key)
            facts = kept.facts if running is None else replace(kept.facts, state=running.state, error=None)
            rows.append(
                {
                    "key": facts.key,
                    "library": library,
                    "question": facts.question,
                    "agent": facts.agent,
                    "state": facts.state,
                    "error": facts.error,
                    "text": facts.text,
                    "letter": facts.letter,
                    "status": facts.status,
                    "videos": list(facts.videos.values()),
                    "after": facts.after,
                    "asked_at": facts.asked_at,
                }
            )
        return rows

    def records(self, key: str) -> list[Record]:
        """Records of a question's trace so far; raises NotGiven if there are none yet, or will never be."""
        found = self.find(key)
        records = list(found.records) if isinstance(found, Running) or found.path.is_file() else []
        if not records:
            raise NotGiven(f"the question {key} has no trace: {found.error or 'it has not begun yet'}")
        return records

    @property
    def running(self) -> list[Running]:
        """Questions under way."""
        return list(self._running.values())

    def about(self) -> dict[str, Any]:
        """Describe to the page what can be asked here."""
        return offer(self.settings, self._libraries, [self._refusal(each) for each in self._libraries])

    def stop_all(self) -> None:
        """End all questions at once with what they have; any thread may call it."""
        for each in self.running:
            each.stop(at_once=True)

    def close(self) -> None:
        """Stop all questions, keep them, and close the models."""
        self.stop_all()
        self._thread.close()

    def _library(self, number: int) -> Library:
        if not 0 <= number < len(self._libraries):
            raise NotGiven(f"got library {number}; there are {len(self._libraries)}, counted from 0")
        return self._libraries[number]

    def _refusal(self, library: Library) -> str | None:
        """The reason why no question about a library's pictures can be asked with this choice of models, if so."""
        space, pictured = find_space(library, self.settings.space), _has_pictures(library.videos())
        try:
            check_known_world(self.settings.choice, space, has_pictures=pictured)
        except UsageError as error:
            return str(error)
        return None

    def _plan(self, request: AskRequest) -> _Plan:
        library, settings = self._library(request.library), self.settings
        variant = settings.variant(request.agent)
        follows = None if request.after is None else self._followed(request.after, request.library)
        rows = library.videos_named(request.videos)
        if follows is not None and not rows:
            held = library.video_ids()
            rows = [library.video(each) for each in follows.facts.videos if each in held]
        whole = not rows
        rows = rows or library.videos()
        if not rows:
            raise UsageError("the library holds no video to ask about; ingest one first")
        if variant.roles:
            check_known_world(settings.choice, find_space(library, settings.space), has_pictures=_has_pictures(rows))
        unpictured = [row.title for row in rows if not row.frames]
        check_fit(variant, has_language=settings.choice.has_language, unpictured=unpictured)
        longest_s = max(row.duration_s for row in rows)
        parameters = with_settings(variant.parameters(longest_s), request.settings)
        return _Plan(variant, parameters, tuple(rows), None if follows is None else follows.path, whole)

    def _followed(self, key: str, library: int) -> Kept:
        found = self.find(key)
        if isinstance(found, Running):
            raise UsageError(f"the question {key} is not answered yet; wait for its answer, or stop it")
        if found.library != library or found.state != "done":
            raise UsageError(f"the question {key} has no answer in this library that another could follow")
        return found

    def _budget(self, budget: Budget) -> Budget:
        settings = self.settings
        if len(self._running) >= settings.at_once:
            count = "1 question is" if settings.at_once == 1 else f"{len(self._running)} questions are"
            raise TooManyQuestions(
                f"{count} under way, as many as this server answers at once; wait for an answer, or stop one"
            )
        left = None
        if settings.usd_a_day is not None:
            left = settings.usd_a_day - spent_today(settings.traces)
            if left <= 0:
                raise MoneySpent(
                    f"the questions of today have cost {settings.usd_a_day:g}, as much as this server may spend in a "
                    "day; ask again tomorrow (UTC)",
                    until_tomorrow_s(),
                )
        return settings.lowered(budget, left)

    def _facts(self, running: Running, plan: _Plan) -> QuestionFacts:
        question = running.request.question
        return QuestionFacts(
            key=running.key,
            library=redact_uri(self.kept.uris[running.request.library]),
            question=question.text,
            options=question.options,
            agent=plan.variant.name,
            videos={} if plan.whole else {row.video_id: row.title for row in plan.rows},
            asked_at=running.asked_at,
            after=running.request.after,
        )

    async def _answer(self, running: Running, plan: _Plan, budget: Budget) -> None:
        """Answer in the thread of the questions. Whatever ends it, it is kept and its readers get to know."""
        result: Answer | Exception = QuestionFault("the server ended before the answer came")
        try:
            result = await self._ask(running, plan, budget)
        except (KinodexError, PipelineError) as error:
            result = error
        except Exception as error:
            traceback.print_exception(error)
            result = QuestionFault("a fault of kinodex ended this question; the server's terminal shows it")
        finally:
            facts = _with_result(self._facts(running, plan), result)
            self.tally.count_question(facts.status or "failed", result.ledger if isinstance(result, Answer) else None)
            try:
                self.kept.save(running.request.library, facts)
            except OSError as error:  # a full disk, say: those who wait get the answer all the same
                traceback.print_exception(error)
            del self._running[running.key]
            running.end(result)

    async def _ask(self, running: Running, plan: _Plan, budget: Budget) -> Answer:
        request, path = running.request, self.kept.path(running.request.library, running.key)
        video_ids = [] if plan.whole else [row.video_id for row in plan.rows]
        environment = await self._environments.of(request.library, video_ids)
        seen = None if plan.follows is None else read_prior_evidence(plan.follows, environment)

        def keep(record: Record) -> None:
            running.add(record)
            self._count_money(record)

        with trace_to(path, keep) as write, self.settings.watch(environment.source.uri) as watch:

            def on_event(event: Event) -> None:
                write(event)
                watch(event)

            return await ask(
                request.question,
                environment,
                self._thread.models(environment),
                agent=plan.variant,
                parameters=plan.parameters,
                budget=budget,
                rules=request.rules,
                seen=seen,
                on_event=on_event,
                stop=running.signal,
            )

    def _count_money(self, record: Record) -> None:
        """Add the cost of a call to the day; at its limit all questions end with what they have."""
        usage: Mapping[str, Any] = record.get("usage") or {}
        if not usage.get("cost") or record.get("cached"):
            return
        spend(self.settings.traces, usage["cost"])
        limit = self.settings.usd_a_day
        if limit is not None and spent_today(self.settings.traces) >= limit:
            for each in self.running:
                each.stop(MONEY_SPENT, at_once=True)


def _with_result(facts: QuestionFacts, result: Answer | Exception) -> QuestionFacts:
    if not isinstance(result, Answer):
        return replace(facts, state="failed", error=str(result))
    return replace(
        facts,
        state="done",
        text=result.text,
        letter=result.letter,
        status=result.status,
        cost=result.ledger.cost,
    )


def _has_pictures(rows: Sequence[VideoRow]) -> bool:
    return any(row.frames for row in rows)
