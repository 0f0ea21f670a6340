"""A question that is stopped: calls are cut, and the best answer so far comes, from every agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import VARIANTS, ask
from kinodex.agent.limits import StopSignal
from kinodex.agent.models.openai_model import open_models
from kinodex.agent.models.roles import read_roles
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import AnswerRules, Exchange, Model, Question, Request
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.trace import Event, Exchanged, Finished
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.libraries.sketch_library import SketchLibrary
from tests.support.servers.chat_server import ChatServer, hanging
from tests.support.servers.rule_server import MODEL, Rules, RuleServer

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
GRACE_S = 0.2


@pytest.fixture(scope="module")
def sketches(copy_sketches: Callable[[Path], SketchLibrary], tmp_path_factory: pytest.TempPathFactory) -> SketchLibrary:
    return copy_sketches(tmp_path_factory.mktemp("sketches"))


@pytest.fixture(scope="module")
def rules() -> Iterator[ChatServer]:
    with RuleServer(Rules()) as server:
        yield server


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Any:
    events = {700: ("red kite desert", 12)}
    return environment_of(make_library(tmp_path_factory.mktemp("run"), {"film": film(1, 900, events)}))


class Stopping:
    """A model that stops its question during its `last`-th call, and never replies to that one."""

    has_language = True

    def __init__(self, inner: Model, signal: StopSignal, last: int) -> None:
        self.name, self._inner, self._signal, self._last = inner.name, inner, signal, last
        self.calls = 0

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        self.calls += 1
        if self.calls == self._last:
            threading.Thread(target=self._signal.stop).start()
            await asyncio.Event().wait()
        return await self._inner.ask(request)


@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.parametrize("agent", [each.name for each in VARIANTS if each.roles])
def test_every_agent_ends_with_the_best_answer_so_far(
    agent: str, last: int, sketches: SketchLibrary, rules: ChatServer
) -> None:
    known = next(each for each in sketches.known if each.film == "harbour")
    environment = sketches.films["harbour"].without_shared_captions()
    signal, events = StopSignal(GRACE_S), list[Event]()

    async def run() -> Any:
        async with open_models(read_roles({"default": {"model": MODEL, "base_url": rules.base_url}})) as models:
            model = Stopping(models["default"], signal, last)
            answer = await ask(known.question, environment, model, agent=agent, on_event=events.append, stop=signal)
            return answer, model.calls

    answer, calls = asyncio.run(run())
    if calls < last:
        assert answer.reason != "stopped", "it had ended before"
        return
    assert answer.reason == "stopped" and answer.status in ("budget_exhausted", "insufficient_evidence")
    assert answer.status == "insufficient_evidence" or answer.text is None or answer.letter
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(each, Exchanged) for each in events) <= calls - 1


def test_the_last_request_gets_what_was_seen(environment: Any) -> None:
    signal = StopSignal()

    def stop_at_scores(request: Request[Any]) -> Any:
        if isinstance(request, ScoreSegments) and request.history:
            signal.stop()
        return explorer(request)

    model = ScriptedModel(stop_at_scores)
    answer = asyncio.run(ask(QUESTION, environment, model, stop=signal))
    assert (answer.status, answer.reason, answer.option) == ("budget_exhausted", "stopped", 0)
    (last,) = [each for each in model.asked(Decide) if each.must_answer]
    assert last.frames and model.requests[-1] is last


def test_a_second_stop_leaves_no_time_for_it(environment: Any) -> None:
    signal = StopSignal()

    def stop_twice(request: Request[Any]) -> Any:
        if isinstance(request, ScoreSegments):
            signal.stop()
            signal.stop()
        return explorer(request)

    model = ScriptedModel(stop_twice)
    answer = asyncio.run(ask(QUESTION, environment, model, stop=signal))
    assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "stopped", None)
    assert not model.asked(Decide)


def test_a_stop_before_the_beginning_asks_nothing(environment: Any) -> None:
    signal, model = StopSignal(), ScriptedModel(explorer)
    signal.stop("the day is over")
    answer = asyncio.run(ask(QUESTION, environment, model, stop=signal))
    assert (answer.status, answer.reason, model.requests) == ("budget_exhausted", "the day is over", [])


def test_a_stop_after_the_end_changes_nothing(environment: Any) -> None:
    signal = StopSignal()
    answer = asyncio.run(ask(QUESTION, environment, ScriptedModel(explorer), stop=signal))
    signal.stop()
    assert answer.reason == "rounds"


def test_an_answer_that_the_agent_had_needs_no_request(environment: Any) -> None:
    """With the gate an answer in doubt is kept while the search goes on: that is the best so far."""
    signal = StopSignal()

    def doubtful(request: Request[Any]) -> Any:
        match request:
            case Decide(complaint=complaint) if complaint:
                signal.stop()
                return explorer(request)
            case Decide():
                return {"action": "answer", "option": "B", "answer": "red", "evidence": [1]}
            case ScoreSegments():
                return explorer(request)
        if type(request).__name__.startswith("Verify"):
            return {"option": "A", "answer": "blue", "evidence": [1]}
        return explorer(request)

    model = ScriptedModel(doubtful)
    answer = asyncio.run(ask(QUESTION, environment, model, rules=AnswerRules(verify=True), stop=signal))
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "stopped", "B")
    assert answer.supported is False


def test_a_server_that_hangs_is_cut(environment: Any) -> None:
    """The reply would come in a minute; the last request hangs as well, and is cut after the grace."""
    signal = StopSignal(GRACE_S)

    def reply(body: dict[str, Any]) -> Any:
        threading.Thread(target=signal.stop).start()
        return hanging(60)

    async def run() -> Any:
        with ChatServer(reply, models=["tester"]) as server:
            async with open_models(read_roles({"default": {"model": "tester", "base_url": server.base_url}})) as models:
                return await ask(QUESTION, environment, models, stop=signal)

    answer = asyncio.run(run())
    assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "stopped", None)


def test_the_built_in_model_is_stopped_from_another_thread(sketches: SketchLibrary) -> None:
    """It never waits, so only the next request can notice."""
    signal, environment = StopSignal(), sketches.everything
    rounds: list[int] = []

    def stop_in_round_2(event: Event) -> None:
        rounds.append(getattr(event, "round", 0))
        if rounds[-1] == 2 and not signal.stopped:
            thread = threading.Thread(target=signal.stop)
            thread.start()
            thread.join()

    answer = asyncio.run(
        ask("What is never there?", environment, RuleBasedModel(environment), on_event=stop_in_round_2, stop=signal)
    )
    assert (answer.reason, answer.rounds, max(rounds)) == ("stopped", 2, 2)
