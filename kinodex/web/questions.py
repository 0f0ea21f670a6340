"""The questions of a server: begun within its limits, answered in a thread of their own, kept as traces."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.limits.budget import Budget
from kinodex.agent.traces.trace import Record
from kinodex.agent.variants.base import Variant
from kinodex.desk import ALL_FILMS, Desk
from kinodex.errors import KinodexError
from kinodex.index.library import Library, LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.collection.asker import PAID
from kinodex.jobs.errors import UsageError
from kinodex.jobs.kept_files import keep_limits, keep_traces
from kinodex.jobs.models import describe_models
from kinodex.jobs.verification.look import Looked, verified
from kinodex.jobs.verification.spans import Found
from kinodex.redaction import redact_uri
from kinodex.requests import Ask
from kinodex.runs import Run
from kinodex.server.responses import NotGiven, Refused, numbered
from kinodex.web.asking_thread import AskingThread
from kinodex.web.daily_costs import spend, spent_today, until_tomorrow_s
from kinodex.web.failures import QuestionFault, remedy, tried
from kinodex.web.kept_traces import Kept, KeptTraces, QuestionFacts
from kinodex.web.offer import offer
from kinodex.web.running import Running, watched
from kinodex.web.serve_settings import ServeSettings
from kinodex.web.tally import Tally

RETRY_S = 10.0
LISTED = 200
"""Questions that a list shows, newest first."""
LISTED_FIELDS = (
    *("key", "question", "agent", "state", "error", "tried", "remedy"),
    *("text", "letter", "status", "follow_up", "asked_at"),
)
MONEY_SPENT = "the money of the day"


class TooManyQuestions(Refused):
    """As many questions are under way as the server allows."""

    status = 429
    retry_s = RETRY_S


class MoneySpent(Refused):
    """The questions of today have cost as much as they may; `retry_s` is when the next day begins."""

    status = 429

    def __init__(self, message: str, retry_s: float) -> None:
        super().__init__(message)
        self.retry_s = retry_s


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request that was checked, within the limits of the server: its agent, videos and the trace that it follows."""

    request: Ask
    variant: Variant
    rows: tuple[VideoRow, ...]
    whole: bool
    """True if it is about all videos of the library, those that come later too."""


class Questions:
    """All questions about some libraries. `start`, `find` and `listing` belong to the thread of those libraries."""

    def __init__(self, libraries: Sequence[Library], settings: ServeSettings) -> None:
        self.settings = settings
        self.tally = Tally()
        self._libraries = tuple(libraries)
        uris = [library.uri for library in libraries]
        keep_traces(settings.traces, keep_limits())
        self.kept = KeptTraces(settings.traces, uris)
        self._checks = [settings.desk(library) for library in libraries]
        self._desks: dict[int, Desk] = {}
        self._running: dict[str, Running] = {}
        self._thread = AskingThread(settings.choice)

    def start(self, library: int, request: Ask) -> Running:
        """Begin to answer a question about a library, by its number.

        Raises TooManyQuestions or MoneySpent, or a KinodexError if it makes no sense.
        """
        plan = self._plan(library, request)
        running = Running(self.kept.new_key(), library, request, datetime.now(UTC))
        self.kept.save(library, self._facts(running, plan))
        self._running[running.key] = running
        self._thread.submit(lambda: self._answer(running, plan))
        return running

    def look(self, library: LibraryReader, text: str, found: Sequence[Found], count: int) -> tuple[list[Found], Looked]:
        """Have the server's model look at moments, in any thread; raises as `verified`, and as `start` at a limit."""
        self._left()
        judged, looked = verified(library, text, found, count, self.settings.choice)
        if looked.usage.cost:
            spend(self.settings.traces, looked.usage.cost)
        return judged, looked

    def find(self, key: str) -> Running | Kept:
        return self._running.get(key) or self.kept.find(key)

    def listing(self, library: int) -> list[dict[str, Any]]:
        """Questions about a library as the page lists them, newest first; also those asked before a restart."""
        self._library(library)
        rows, before = [], dict(self._running)
        for kept in self.kept.listing(library)[:LISTED]:
            running = self._running.get(kept.key)
            if running is None and kept.key in before:  # it has ended since its facts were read
                kept = self.kept.find(kept.key)
            facts = kept if running is None else replace(kept, state=running.state, error=None)
            listed = {name: getattr(facts, name) for name in LISTED_FIELDS}
            rows.append(listed | {"library": library, "videos": list(facts.videos.values())})
        return rows

    def records(self, key: str) -> list[Record]:
        found = self.find(key)
        records = list(found.records) if isinstance(found, Running) or found.path.is_file() else []
        if not records:
            raise NotGiven(f"the question {key} has no trace: {found.error or 'it has not begun yet'}")
        return records

    @property
    def running(self) -> list[Running]:
        return list(self._running.values())

    def about(self) -> dict[str, Any]:
        return offer(self.settings, self._libraries)

    def stop_all(self) -> None:
        for each in self.running:
            each.stop(at_once=True)

    def close(self) -> None:
        self.stop_all()
        self._thread.close()

    def _library(self, number: int) -> Library:
        return numbered(self._libraries, number, "library")

    def _plan(self, library: int, request: Ask) -> _Plan:
        numbered(self._libraries, library, "library")
        desk, asked = self._checks[library], request
        if request.follow_up is not None:
            earlier = self._earlier(request.follow_up, library)
            asked = asked.model_copy(update={"follow_up": str(earlier.path)})
            if not request.videos:
                held = self._libraries[library].where(request.where).video_ids()
                asked = asked.model_copy(update={"videos": tuple(each for each in earlier.videos if each in held)})
        variant = desk.check(asked)
        budget = self.settings.budget.within(request.budget).within(Budget(cost=self._left()))
        asked = asked.model_copy(update={"budget": budget})
        whole = not asked.videos and asked.where is None
        return _Plan(asked, variant, tuple(desk.videos(asked)), whole)

    def _earlier(self, key: str, library: int) -> Kept:
        found = self.find(key)
        if isinstance(found, Running):
            raise UsageError(f"the question {key} is not answered yet; wait for its answer, or stop it")
        if found.number != library or found.state != "done":
            raise UsageError(f"the question {key} has no answer in this library that another could follow")
        return found

    def _left(self) -> float | None:
        """Return the money that is left of the day, None without a limit; raises where no question can begin now."""
        settings = self.settings
        if len(self._running) >= settings.at_once:
            count = "1 question is" if settings.at_once == 1 else f"{len(self._running)} questions are"
            raise TooManyQuestions(
                f"{count} under way, as many as this server answers at once; wait for an answer, or stop one"
            )
        if settings.usd_a_day is None:
            return None
        left = settings.usd_a_day - spent_today(settings.traces)
        if left <= 0:
            raise MoneySpent(
                f"the questions of today have cost {settings.usd_a_day:g}, as much as this server may spend in a "
                "day; ask again tomorrow (UTC)",
                until_tomorrow_s(),
            )
        return left

    def _facts(self, running: Running, plan: _Plan) -> QuestionFacts:
        request = running.request
        library = redact_uri(self.kept.uris[running.library])
        asked = request.question, request.options, plan.variant.name
        videos = {} if plan.whole else {row.video_id: row.title for row in plan.rows}
        return QuestionFacts(running.key, library, *asked, videos, running.asked_at, request.follow_up)

    async def _answer(self, running: Running, plan: _Plan) -> None:
        """Answer in the thread of the questions. Whatever ends it, it is kept and its readers get to know."""
        result: Answer | Exception = QuestionFault("the server ended before the answer came")
        try:
            result = await self._ask(running, plan)
        except KinodexError as error:
            result = error
        except Exception as error:
            traceback.print_exception(error)
            result = QuestionFault("a fault of kinodex ended this question; the server's terminal shows it")
        finally:
            facts = self._ended(running, plan, result)
            self.tally.count_question(facts.status or "failed", result.ledger if isinstance(result, Answer) else None)
            try:
                self.kept.save(running.library, facts)
            except OSError as error:  # a full disk, say: those who wait get the answer all the same
                traceback.print_exception(error)
            del self._running[running.key]
            running.end(result)

    def _ended(self, running: Running, plan: _Plan, result: Answer | Exception) -> QuestionFacts:
        facts = replace(self._facts(running, plan), state="failed", error=str(result))
        if isinstance(result, Answer):
            answered = replace(facts, state="done", error=None, text=result.text, letter=result.letter)
            return replace(answered, status=result.status, cost=result.ledger.cost)
        running.tried = tried(running.records, plan.variant.name, describe_models(self.settings.choice))
        running.remedy = remedy(result)
        return replace(facts, tried=running.tried, remedy=running.remedy)

    async def _ask(self, running: Running, plan: _Plan) -> Answer:
        path = self.kept.path(running.library, running.key)

        def keep(record: Record) -> None:
            running.add(record)
            self._count_money(record)

        if running.library not in self._desks:
            self._desks[running.library] = self.settings.desk(Library.open(self.kept.uris[running.library]))
        desk = self._desks[running.library]
        # Videos that come later belong to a question about all, which names none.
        video_ids = () if plan.whole else tuple(row.video_id for row in plan.rows)
        request = plan.request.model_copy(update={"videos": video_ids})
        run = Run(trace=path, on_record=keep, stop=running.signal)
        if plan.variant.name == ALL_FILMS:
            return await asyncio.to_thread(desk.ask_all, request, run)
        with self.settings.watch(desk.library.uri) as watch:
            models = replace(
                run, on_event=watch, models=lambda environment: watched(self._thread.models(environment), running)
            )
            return await desk.ask(request, models)

    def _count_money(self, record: Record) -> None:
        """Add the cost of a call, or of a film, to the day; at its limit all questions end with what they have."""
        films: Mapping[str, Any] = record["arguments"] if record.get("action") in PAID else {}
        usage: Mapping[str, Any] = record.get("usage") or films
        if not usage.get("cost") or record.get("cached"):
            return
        spend(self.settings.traces, usage["cost"])
        limit = self.settings.usd_a_day
        if limit is not None and spent_today(self.settings.traces) >= limit:
            for each in self.running:
                each.stop(MONEY_SPENT, at_once=True)
