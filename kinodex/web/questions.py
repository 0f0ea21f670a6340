"""The questions of a server: begun within its limits, answered in a thread of their own, kept as traces."""

from __future__ import annotations

import asyncio
import shlex
import threading
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from kinodex import answers
from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, check_fit, variant_named
from kinodex.agent.environment import Environment
from kinodex.agent.errors import (
    AllRejected,
    ContextSpent,
    KeyMissing,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    NeedsPictures,
    TakesNoPictures,
)
from kinodex.agent.limits import STOPPED, Budget, Ledger, StopSignal
from kinodex.agent.protocol import USUAL, AnswerRules, Exchange, Model, Models, Question, R, Request, ShownFrame
from kinodex.agent.trace import Record, ReplayModel
from kinodex.agent.variants.base import Variant, with_settings
from kinodex.collection import ALL, answer_all
from kinodex.guards import NotGiven, Refused, numbered
from kinodex.index.errors import KinodexError
from kinodex.index.library import Library, LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.index.text import redact_uri, redact_values
from kinodex.jobs.collection import PAID
from kinodex.jobs.errors import UsageError
from kinodex.jobs.kept_files import keep_limits, keep_traces
from kinodex.jobs.model_loop import ModelLoop
from kinodex.jobs.models import (
    BUILTIN,
    ModelChoice,
    check_known_world,
    check_sight,
    chosen_models,
    describe_models,
)
from kinodex.jobs.open import find_space, open_environment
from kinodex.jobs.telemetry import Watch, unwatched
from kinodex.jobs.verify import Found, Looked, looking_role, verified
from kinodex.pipeline.errors import PipelineError
from kinodex.web.kept_traces import Kept, KeptTraces, QuestionFacts, spend, spent_today, until_tomorrow_s
from kinodex.web.sentences import latest_sentence

N = TypeVar("N", int, float)
AT_ONCE = 4
"""Questions that are answered at once unless the server's user says otherwise."""
UNLIMITED = Budget()
RETRY_S = 10.0
LISTED = 200
"""Questions that a list shows, newest first."""
LISTED_FIELDS = (
    *("key", "question", "agent", "state", "error", "tried", "remedy"),
    *("text", "letter", "status", "after", "asked_at"),
)
MONEY_SPENT = "the money of the day"


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The choice of the user who starts the server.

    `budget` is that of each question, which a request can lower. `at_once` limits questions under way, `usd_a_day` the
    money that they may cost in a day of UTC. `traces` is the folder that keeps them; `watch` opens one more
    watcher of each question's events, given the library's address.
    """

    choice: ModelChoice
    agent: Variant
    traces: Path
    budget: Budget
    at_once: int = AT_ONCE
    usd_a_day: float | None = None
    space: str | None = None
    detector: str | None = None
    watch: Watch = unwatched

    def variant(self, name: str) -> Variant:
        """The agent of a name: one of kinodex, or the server's own; never a file, whose code would run here."""
        if name == ALL.name and self.choice.may_use_endpoints:
            return ALL
        return self.agent if name == self.agent.name else variant_named(name)

    def lowered(self, budget: Budget, cost: float | None = None) -> Budget:
        """The server's budget, lowered to that of a request and to the money that is left."""
        limits = {name: _least(limit, getattr(budget, name)) for name, limit in asdict(self.budget).items()}
        return Budget(**limits | {"cost": _least(limits["cost"], cost)})


def _least(*limits: N | None) -> N | None:
    return min((each for each in limits if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question for the agent of a name about videos of a library (by its number); none: all, or those of `after`."""

    library: int
    question: Question
    agent: str = "kino"
    videos: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = UNLIMITED
    rules: AnswerRules = USUAL
    after: str | None = None
    where: str | None = None
    """Of these videos those for which it holds."""


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


class QuestionFault(KinodexError):
    """A fault of the program ended a question: its traceback is on the server's terminal, not on the wire."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request that was checked: agent, videos and the trace that it follows."""

    variant: Variant
    rows: tuple[VideoRow, ...]
    follows: Path | None
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
        self._environments = Environments(uris, settings.detector, settings.space)
        self._running: dict[str, Running] = {}
        self._thread = AskingThread(settings.choice)

    def start(self, request: AskRequest) -> Running:
        """Begin to answer a question; raises TooManyQuestions or MoneySpent, or a KinodexError if it makes no sense."""
        plan = self._plan(request)
        budget = self._budget(request.budget)
        running = Running(self.kept.new_key(), request, datetime.now(UTC))
        self.kept.save(request.library, self._facts(running, plan))
        self._running[running.key] = running
        self._thread.submit(lambda: self._answer(running, plan, budget))
        return running

    def look(self, library: LibraryReader, text: str, found: Sequence[Found], count: int) -> tuple[list[Found], Looked]:
        """Have the server's model look at moments, in any thread; raises as `verified`, and as `start` at a limit."""
        self._budget(UNLIMITED)
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
        return offer(self.settings, self._libraries, [self._refusal(each) for each in self._libraries])

    def stop_all(self) -> None:
        for each in self.running:
            each.stop(at_once=True)

    def close(self) -> None:
        self.stop_all()
        self._thread.close()

    def _library(self, number: int) -> Library:
        return numbered(self._libraries, number, "library")

    def _refusal(self, library: Library) -> str | None:
        """The reason why no question about a library's pictures can be asked with this choice of models, if so."""
        space, pictured = find_space(library, self.settings.space), any(row.frames for row in library.videos())
        try:
            check_known_world(self.settings.choice, space, has_pictures=pictured)
        except UsageError as error:
            return str(error)
        return None

    def _plan(self, request: AskRequest) -> _Plan:
        library, settings = self._library(request.library).where(request.where), self.settings
        variant = settings.variant(request.agent)
        follows = None if request.after is None else self._followed(request.after, request.library)
        rows = library.videos_named(request.videos)
        if follows is not None and not rows:
            held = library.video_ids()
            rows = [library.video(each) for each in follows.videos if each in held]
        whole = not rows and request.where is None
        rows = rows or library.videos()
        if not rows:
            raise UsageError("the library holds no video to ask about; ingest one first")
        check_sight(settings.choice, variant)
        if variant.roles:
            space, pictured = find_space(library, settings.space), any(row.frames for row in rows)
            check_known_world(settings.choice, space, has_pictures=pictured)
        unpictured = [row.title for row in rows if not row.frames]
        check_fit(variant, has_language=settings.choice.has_language, unpictured=unpictured)
        with_settings(variant.parameters(max(row.duration_s for row in rows)), request.settings)  # raises BadSettings
        return _Plan(variant, tuple(rows), None if follows is None else follows.path, whole)

    def _followed(self, key: str, library: int) -> Kept:
        found = self.find(key)
        if isinstance(found, Running):
            raise UsageError(f"the question {key} is not answered yet; wait for its answer, or stop it")
        if found.number != library or found.state != "done":
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
        request = running.request
        library = redact_uri(self.kept.uris[request.library])
        asked = request.question.text, request.question.options, plan.variant.name
        videos = {} if plan.whole else {row.video_id: row.title for row in plan.rows}
        return QuestionFacts(running.key, library, *asked, videos, running.asked_at, request.after)

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
            facts = replace(self._facts(running, plan), state="failed", error=str(result))
            if isinstance(result, Answer):
                told = replace(facts, state="done", error=None, text=result.text, letter=result.letter)
                facts = replace(told, status=result.status, cost=result.ledger.cost)
            else:
                running.tried = tried(running.records, plan.variant.name, describe_models(self.settings.choice))
                running.remedy = remedy(result)
                facts = replace(facts, tried=running.tried, remedy=running.remedy)
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

        def keep(record: Record) -> None:
            running.add(record)
            self._count_money(record)

        asked = answers.AskRequest(
            self.settings.choice,
            settings=request.settings,
            budget=budget,
            rules=request.rules,
            trace=path,
            follow_up=plan.follows,
            on_record=keep,
            stop=running.signal,
        )
        if plan.variant is ALL:
            library = Library.open(self.kept.uris[request.library]).where(request.where)
            return await asyncio.to_thread(answer_all, library, request.question, asked, videos=video_ids)
        environment = await self._environments.of(request.library, video_ids)
        models = _watched(self._thread.models(environment), running)
        with self.settings.watch(environment.source.uri) as watch:
            asked = replace(asked, models=models, agent=plan.variant, on_event=watch)
            return await answers.answer(environment, request.question, asked)

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


# A failure in words: the server's own are the error; beside them stand what was tried, and the one thing to do.

AGAIN = "Ask it again, or change the question."
DOCTOR = "kinodex doctor --base-url URL"
REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (KeyMissing, "Put the key into the environment of the server, and start it again."),
    (ModelUnknown, f"Start the server again with a model that the endpoint has; {DOCTOR} lists them."),
    (AllRejected, f"Correct the key or the address: {DOCTOR} tries both. Then start the server again."),
    (TakesNoPictures, "Start the server again with a model that sees, or choose a method that reads words alone."),
    (ContextSpent, "Ask it again with fewer frames (under Limits), or about fewer videos."),
    (ModelRejected, f"See what the endpoint takes: {DOCTOR}. Or ask again with another method or fewer frames."),
    (ModelUnreachable, "Start the model's server, or start this one again with the right --base-url; then ask again."),
    (NeedsPictures, "Choose a method that reads words alone, or videos with pictures."),
    (QuestionFault, "Look at the terminal of the server: it shows the fault. Please report it."),
)


def remedy(error: Exception) -> str:
    return next((words for kind, words in REMEDIES if isinstance(error, kind)), AGAIN)


def tried(records: Sequence[Record], agent: str, models: Mapping[str, str]) -> str:
    """The work of a question until it failed, in a sentence; `models` are as `describe_models` names them."""
    if not records:
        return f"The method {agent} had not begun."
    asked = " and ".join(dict.fromkeys(models.values()))
    replies = sum(each["event"] == "Exchanged" for each in records)
    came = f"{replies} {'reply' if replies == 1 else 'replies'} came"
    last = latest_sentence(records) if replies else "It was the first call that failed."
    return f"The method {agent} asked {asked}; {came}. {last}"


# One question while it is answered: its trace so far, and its end, for any number of readers in other threads.

State = Literal["running", "stopping", "done", "failed"]
FINISHED: tuple[State, ...] = ("done", "failed")


@dataclass(eq=False)
class Running:
    """A question under way in another thread; `records` grow, and `finished` waits for the answer."""

    key: str
    request: AskRequest
    asked_at: datetime
    state: State = "running"
    records: list[Record] = field(default_factory=list)
    answer: Answer | None = None
    failure: Exception | None = None
    tried: str = ""
    remedy: str = ""
    """Beside a failure: what was done until then, and the one thing to do about it."""
    signal: StopSignal = field(default_factory=StopSignal)
    looking: list[tuple[ShownFrame, ...]] = field(default_factory=list)
    """Frames of the calls under way, which the trace holds only once they are answered."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _version: int = 0
    _readers: set[_Reader] = field(default_factory=set)

    @property
    def error(self) -> str | None:
        return None if self.failure is None else str(self.failure)

    @property
    def version(self) -> int:
        return self._version

    def stop(self, reason: str = STOPPED, *, at_once: bool = False) -> None:
        """End it with the best answer so far, for a `reason`; once more, or `at_once`, without a last request."""
        with self._lock:
            if self.state in FINISHED:
                return
            self.state = "stopping"
            self._change()
        self.signal.stop(reason, at_once=at_once)

    def add(self, record: Record) -> None:
        with self._lock:
            self.records.append(record)
            self._change()

    @contextmanager
    def calling(self, frames: tuple[ShownFrame, ...]) -> Iterator[None]:
        """Show readers what a model looks at, until its reply."""
        with self._lock:
            self.looking.append(frames)
            self._change()
        try:
            yield
        finally:
            with self._lock:
                self.looking.remove(frames)
                self._change()

    def end(self, result: Answer | Exception) -> None:
        with self._lock:
            self.answer, self.failure = (result, None) if isinstance(result, Answer) else (None, result)
            self.state = "failed" if self.answer is None else "done"
            self._change()

    async def changes(self, since: int = 0, beat_s: float | None = None) -> AsyncGenerator[int | None, None]:
        """Yield the number of changes when it is above `since`, until the end; None after each `beat_s` without one."""
        reader = _Reader(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._readers.add(reader)
        try:
            while True:
                reader.changed.clear()
                with self._lock:
                    version, ended = self._version, self.state in FINISHED
                if version > since:
                    since = version
                    yield version
                if ended:
                    return
                try:
                    await asyncio.wait_for(reader.changed.wait(), beat_s)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._readers.discard(reader)

    async def finished(self) -> Answer:
        async for _ in self.changes():
            pass
        if self.answer is None:
            assert self.failure is not None
            raise self.failure
        return self.answer

    def _change(self) -> None:
        """Count a change and wake all readers; the lock is held, so that none of them leaves its loop meanwhile."""
        self._version += 1
        for reader in self._readers:
            reader.loop.call_soon_threadsafe(reader.changed.set)


@dataclass(frozen=True, eq=False, slots=True)
class _Reader:
    loop: asyncio.AbstractEventLoop
    changed: asyncio.Event


@dataclass(frozen=True, eq=False, slots=True)
class _WatchedModel:
    """A model whose calls the readers of a question see while they are under way."""

    model: Model
    running: Running

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def has_language(self) -> bool:
        return getattr(self.model, "has_language", True)

    @property
    def check_sight(self) -> Any:
        return getattr(self.model, "check_sight", None)

    async def ask(self, request: Request[R]) -> Exchange[R]:
        with self.running.calling(request.frames):
            return await self.model.ask(request)


def _watched(models: Models, running: Running) -> Models:
    if isinstance(models, Mapping):
        return {role: _WatchedModel(each, running) for role, each in models.items()}
    return models if isinstance(models, ReplayModel) else _WatchedModel(models, running)


# Environments of a server's libraries, opened when they are first asked about and kept for the next question.

KEPT = 8
"""Sets of videos whose vectors stay in memory for follow-up questions."""
STATES = ("additions", "speakers")
"""Tables that change whenever a stage adds to videos, or takes away: readers see no rows before these say so."""
Key = tuple[int, tuple[tuple[str, datetime], ...], tuple[int, ...]]
"""All that an environment is made of: the library, its videos as they were ingested, and what was added since."""


class Environments:
    """Environments by library and videos, for the thread of the questions alone."""

    def __init__(self, uris: Sequence[str], detector: str | None, space: str | None) -> None:
        self._uris, self._detector, self._space = tuple(uris), detector, space
        self._opened: dict[int, tuple[Library, Environment]] = {}
        self._recent: dict[Key, Environment] = {}
        self._opening = asyncio.Lock()

    async def of(self, number: int, video_ids: Sequence[str]) -> Environment:
        """The videos of these ids (none: all), with the text tower; raises LibraryError, UnknownVideo or SpaceError."""

        def opened() -> tuple[Library, Environment]:
            library = Library.open(self._uris[number])
            return library, open_environment(library, detector=self._detector, space=self._space)

        async with self._opening:
            if number not in self._opened:  # the tower takes seconds to load
                self._opened[number] = await asyncio.to_thread(opened)
        library, whole = self._opened[number]
        rows = [library.video(each) for each in video_ids] or library.videos()
        states = tuple(library.tables.version(name) for name in STATES if library.tables.has(name))
        key = (number, tuple((row.video_id, row.ingested_at) for row in rows), states)
        found = self._recent.pop(key, None)
        if found is None:
            found = Environment.of(library, rows, whole.source.embed_texts, whole.detect, space=self._space)
        self._recent[key] = found
        if len(self._recent) > KEPT:
            self._recent.pop(next(iter(self._recent)))
        return found


# One thread with an event loop of its own, where all questions of a server are answered.
#
# Models belong to the loop that opened them, and a library's caches to one thread; both live here, so that an agent at
# work holds up no page.

PATIENCE_S = 5.0
"""Seconds that calls have to end when the thread is closed; then they are cancelled."""


class AskingThread:
    """Runs calls until it is closed, with the models of a choice. Raises what opening the models raises."""

    def __init__(self, choice: ModelChoice) -> None:
        self._calls: set[Future[None]] = set()
        with ExitStack() as stack:
            self._loop = stack.enter_context(ModelLoop("questions"))
            self._models = self._loop.open(chosen_models(choice))
            self._opened = stack.pop_all()

    def models(self, environment: Environment) -> Models:
        return self._models(environment)

    def submit(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin a call in this thread; it deals with its errors itself."""
        future = self._loop.submit(call())
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait so long for all calls, cancel the rest, close the models and end the thread."""
        wait([*self._calls], timeout=patience_s)
        self._opened.close()


# The offer of a server to those who ask: agents, models, limits, and for each library if it can be asked about.

HOW = "Start the server with a language model: kinodex serve LIBRARY --model NAME --base-url URL"
"""The way to give a model, for a page that cannot ask without one."""
WAYS = (
    (
        "A server of your own",
        "vLLM, Ollama, or any other that speaks OpenAI's form; it needs no key. A model that sees, in a folder, is "
        "served so too: vllm serve FOLDER.",
        "--model qwen3-vl --base-url http://127.0.0.1:11434/v1",
    ),
    (
        "A provider",
        "Its key stays in the environment: export OPENAI_API_KEY=... For another one than OpenAI add --base-url URL.",
        "--model gpt-4o",
    ),
    (
        "A language model in a folder",
        'In this process, by transformers: model = "local:FOLDER" under [policy] of models.toml. It reads and does not '
        "see, so [default] there names one of the other two for what looks at frames.",
        "--models models.toml --agent longvideoagent",
    ),
)
"""The three ways to give a model: name, what it is for, and options of `kinodex serve`."""


def offer(settings: ServeSettings, libraries: Sequence[Library], refusals: Sequence[str | None]) -> dict[str, Any]:
    """All that the page needs to know to ask. `refusals` say why a library cannot be asked about; None if it can."""
    has_language = settings.choice.has_language
    known = [each for each in VARIANTS if each.name != settings.agent.name]
    known += [ALL] if settings.choice.may_use_endpoints else []
    agents = [each for each in (settings.agent, *known) if has_language or not each.needs_language]
    can_ask = any(refusal is None for refusal in refusals)
    space, start = settings.space, "kinodex serve {} {}"
    drawn = [each.space(space).name == BUILTIN and each.noise(space) is None for each in libraries]
    places = [shlex.quote(redact_uri(each.uri)) for each in libraries]
    value = {
        "can_ask": can_ask,
        "how": None if can_ask else HOW,
        "agents": [{"name": each.name, "summary": each.line, "plain": each.plain} for each in agents],
        "agent": settings.agent.name,
        "models": describe_models(settings.choice),
        "looks": _looking_model(settings.choice),
        "max_questions": settings.at_once,
        "usd_a_day": settings.usd_a_day,
        "is_drawn_world": all(drawn),
        "libraries": [
            {
                "key": number,
                "can_ask": refusal is None,
                "how": None if refusal is None else HOW,
                "ways": [
                    {"name": name, "about": about, "command": start.format(places[number], options)}
                    for name, about, options in (WAYS if refusal is not None else ())
                ],
                "is_drawn_world": is_drawn,
            }
            for number, (refusal, is_drawn) in enumerate(zip(refusals, drawn, strict=True))
        ],
    }
    redacted: dict[str, Any] = redact_values(value)
    return redacted


def _looking_model(choice: ModelChoice) -> str | None:
    """The model that can look at the moments of a search; None where there is none that sees."""
    try:
        return looking_role(choice).model
    except UsageError:
        return None


# Counts of a server since its start, and the text of them that Prometheus reads at `/metrics`.

METHODS = ("GET", "POST", "HEAD", "DELETE", "OPTIONS", "PUT", "PATCH")


@dataclass(eq=False)
class Tally:
    """Counts of all that a server has done; any thread may count."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    request_seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    """Questions that have ended, by the status of their answers, or "failed"."""
    spent: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_request(self, method: str, status: int, seconds: float) -> None:
        with self._lock:
            self.requests[method if method in METHODS else "other", status] += 1
            self.request_seconds += seconds

    def count_question(self, status: str, bill: Ledger | None) -> None:
        with self._lock:
            self.ended[status] += 1
            if bill is not None:
                self.spent["calls"] += bill.calls
                self.spent["frames"] += bill.frames
                self.spent["tokens"] += bill.tokens


METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(tally: Tally, running: int, cost_today: float) -> str:
    """All counts, with the questions under way and the money of the day, for Prometheus to read."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    requests = CounterMetricFamily("kinodex_requests", "HTTP requests answered.", labels=["method", "status"])
    for (method, status), count in sorted(tally.requests.items()):
        requests.add_metric([method, str(status)], count)
    about = "Questions that have ended, by the status of the answer."
    ended = CounterMetricFamily("kinodex_questions", about, labels=["status"])
    for ending, count in sorted(tally.ended.items()):
        ended.add_metric([ending], count)
    sums = (
        ("request_seconds", "Seconds until the last byte, summed.", tally.request_seconds),
        ("model_calls", "Calls of models for answers.", tally.spent["calls"]),
        ("model_frames", "Frames that models saw for answers.", tally.spent["frames"]),
        ("model_tokens", "Tokens in and out for answers.", tally.spent["tokens"]),
    )
    cost = "Money of this day (UTC), at the prices of the models."
    families: list[Metric] = [
        requests,
        ended,
        *(CounterMetricFamily(f"kinodex_{name}", text, value=value) for name, text, value in sums),
        GaugeMetricFamily("kinodex_questions_running", "Questions under way.", value=running),
        GaugeMetricFamily("kinodex_cost_today", cost, value=cost_today),
    ]

    class Families(Collector):
        def collect(self) -> list[Metric]:
            return families

    registry = CollectorRegistry()
    registry.register(Families())
    return generate_latest(registry).decode()
