"""Budgets: what they allow, and what an account counts."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits.account import Account
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.limits.work_clock import WorkClock, held, time_limit, waiting
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.requests.verify import Verify
from kinodex.agent.traces.events import Exchanged, Finished
from kinodex.agent.videos.environment import Environment
from tests.support.libraries.agent_library import ScriptedModel, explorer
from tests.support.runs.kite_runs import QUESTION, asked, by_example
from tests.support.servers.chat_server import ChatServer, hanging
from tests.support.servers.wire import role


def account(**limits: Any) -> Account:
    return Account(Budget(**limits), index_frames=900)


def frame(frame_no: int, video_id: str = "film") -> ShownFrame:
    return ShownFrame(video_id, frame_no, float(frame_no), 8, 8, b"")


USUAL = Usage(input_tokens=100)


def call(running: Account, usage: Usage = USUAL, **more: Any) -> None:
    running.begin_call(())
    running.end_call()
    running.charge(usage, **{"cached": False, "invalid": False, "seconds": 0.0, **more})


def test_budgets_that_allow_nothing() -> None:
    for limit in ({"rounds": 0}, {"frames": -1}, {"cost": 0.0}, {"seconds": -2.0}):
        with pytest.raises(BadSettings, match="above 0"):
            account(**limit)


def test_frames_count_once_every_showing_counts_and_a_call_has_its_tokens_money_and_faults() -> None:
    running = account(frames=5)
    for _ in range(2):
        running.count_shown([frame(1), frame(2), frame(1, "other")])
    running.count_captioned("film", [2, 3, 4])
    usage = Usage(input_tokens=10, output_tokens=4, cached_tokens=6, cost=0.5)
    call(running, usage, cached=True, invalid=True, seconds=2.0)
    ledger = running.ledger
    assert (ledger.frames, ledger.frame_shows, ledger.frames_with_kept, ledger.index_frames) == (3, 6, 5, 900)
    assert (sorted(running.shown_frame_nos("film")), running.frames_left, account().frames_left) == ([1, 2], 2, None)
    assert (ledger.calls, ledger.cached_calls, ledger.invalid_replies) == (1, 1, 1)
    assert (ledger.input_tokens, ledger.output_tokens, ledger.cached_tokens) == (10, 4, 6)
    assert (ledger.cost, ledger.model_seconds) == (0.5, 2.0)


def test_a_call_is_allowed_while_a_final_one_as_large_still_fits() -> None:
    running = account(tokens=430)
    assert running.exhausted_by_call() is None
    call(running)
    assert running.exhausted_by_call() is None  # 100 spent, and two calls of 110 at most
    running.begin_call(())
    assert running.exhausted_by_call() == "tokens"  # beside one in flight
    running.end_call()
    call(running)
    call(running)
    assert (running.exhausted_by_call(), running.exhausted()) == ("tokens", None)
    call(running, Usage(input_tokens=130))
    assert running.exhausted() == "tokens"


def test_estimated_tokens_of_calls_that_no_server_counted_spend_a_budget_too() -> None:
    running = account(tokens=410)
    for _ in range(2):
        assert running.exhausted_by_call() is None
        call(running, Usage(unknown_calls=1, estimated_tokens=100, sheets=2, left_out_frames=3))
    ledger = running.ledger
    assert (running.exhausted_by_call(), ledger.input_tokens, ledger.tokens) == ("tokens", 0, 200)
    assert (ledger.unknown_calls, ledger.estimated_tokens, ledger.sheets, ledger.left_out_frames) == (2, 200, 4, 6)


def test_a_round_is_expected_to_cost_as_much_as_the_one_before() -> None:
    running = account(tokens=1000)
    assert running.begin_round() == 1
    for _ in range(4):
        call(running)
    assert running.exhausted_by_round() == "tokens"  # 400, 400 more, and two decisions of 110
    assert account(tokens=2000).exhausted_by_round() is None


# The clock of a question's own work: what counts, and what it costs to wait for others.


class Hand:
    """A time that moves by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def move(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_it_runs_while_anything_is_done_and_parts_at_once_count_once(hand: Hand) -> None:
    clock = WorkClock(hand)
    hand.move(100)
    with clock.working():
        hand.move(1)
        with clock.working():
            hand.move(2)
        assert clock.seconds == 3
        hand.move(4)
    hand.move(100)
    assert clock.seconds == 7


def test_a_call_does_not_count_while_it_waits(hand: Hand) -> None:
    clock = WorkClock(hand)
    with clock.serving() as service:
        hand.move(1)
        with waiting(), waiting():
            hand.move(10)
        hand.move(2)
    assert (clock.seconds, service.waited_s) == (3, 10)
    with waiting():  # outside of any call
        hand.move(5)
    assert clock.seconds == 3


def test_a_call_that_is_given_up_in_a_wait_stops_the_clock_for_good(hand: Hand) -> None:
    """The models' own thread leaves its wait only after the question has gone on."""
    clock = WorkClock(hand)
    with clock.serving() as service:
        service.pause()
        hand.move(5)
    service.resume()
    hand.move(7)
    assert (clock.seconds, service.waited_s) == (0, 5)


def test_of_two_questions_in_one_loop_each_counts_its_own_steps(hand: Hand) -> None:
    first, second = WorkClock(hand), WorkClock(hand)

    async def step(seconds: float) -> None:
        hand.move(seconds)
        await asyncio.sleep(0)
        hand.move(seconds)

    async def question(clock: WorkClock, seconds: float) -> None:
        async def work() -> None:
            await step(seconds)
            await gather_all([step(seconds), step(seconds)])

        await clock.count(work())

    async def both() -> None:
        await gather_all([question(first, 1), question(second, 100)])

    asyncio.run(both())
    assert (first.seconds, second.seconds) == (6, 600)


def test_errors_and_cancellations_pass_through_the_steps() -> None:
    clock, caught = WorkClock(), []

    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("inside")

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            caught.append(True)
        return "went on"

    async def run() -> str:
        with pytest.raises(KeyError, match="inside"):
            await clock.count(failing())
        task = asyncio.ensure_future(clock.count(stubborn()))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert (asyncio.run(run()), caught) == ("went on", [True])


# A question that is stopped: calls are cut, and the best answer so far comes, from every agent.

GRACE_S = 0.2


class Stopping(ScriptedModel):
    """A model that stops its question during its third call, and never replies to that one."""

    def __init__(self, signal: StopSignal) -> None:
        super().__init__(by_example)
        self.signal = signal

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        if len(self.requests) == 2:
            self.requests.append(request)
            threading.Thread(target=self.signal.stop).start()
            await asyncio.Event().wait()
        return await super().ask(request)


@pytest.mark.parametrize("agent", [each.name for each in VARIANTS if each.roles])
def test_every_agent_ends_with_the_best_answer_so_far(agent: str, kites: Environment) -> None:
    signal = StopSignal(GRACE_S)
    run = asked(kites.without_shared_captions(), Stopping(signal), agent, stop=signal)
    answer, calls = run.answer, len(run.model.requests)
    if calls < 3:
        assert answer.reason != "stopped", "it had ended before"
        return
    assert answer.reason == "stopped" and answer.status in ("budget_exhausted", "insufficient_evidence")
    assert answer.status == "insufficient_evidence" or answer.text is None or answer.letter
    assert isinstance(run.events[-1], Finished) and len(run.of(Exchanged)) <= calls - 1


def test_a_second_stop_leaves_no_time_and_one_before_the_beginning_asks_nothing(kites: Environment) -> None:
    signal = StopSignal()

    def stop_twice(request: Request[Any]) -> Any:
        if isinstance(request, ScoreSegments):
            signal.stop()
            signal.stop()
        return explorer(request)

    run = asked(kites, stop_twice, stop=signal)
    assert (run.answer.status, run.answer.reason, run.answer.text) == ("budget_exhausted", "stopped", None)
    assert not run.asked(Decide)
    early = StopSignal()
    early.stop("the day is over")
    run = asked(kites, explorer, stop=early)
    assert (run.answer.status, run.answer.reason) == ("budget_exhausted", "the day is over")
    assert run.model.requests == []


def test_an_answer_that_the_agent_had_needs_no_request(kites: Environment) -> None:
    """With the gate an answer in doubt is kept while the search goes on: that is the best so far."""
    signal = StopSignal()

    def doubtful(request: Request[Any]) -> Any:
        if isinstance(request, Decide) and not request.complaint:
            return {"action": "answer", "option": "B", "answer": "red", "evidence": [1]}
        if isinstance(request, Decide):
            signal.stop()
        return {"option": "A", "evidence": [1]} if isinstance(request, Verify) else explorer(request)

    answer = asked(kites, doubtful, rules=AnswerRules(verify=True), stop=signal).answer
    assert (answer.status, answer.reason, answer.letter) == ("budget_exhausted", "stopped", "B")
    assert answer.supported is False


def test_a_server_that_hangs_is_cut(kites: Environment) -> None:
    """The reply would come in a minute; the last request hangs as well, and is cut after the grace."""
    signal = StopSignal(GRACE_S)

    def reply(body: dict[str, Any]) -> Any:
        threading.Thread(target=signal.stop).start()
        return hanging(60)

    async def run() -> Any:
        with ChatServer(reply, models=["tester"]) as server:
            async with OpenAIModel(role(server)) as model:
                return await ask(QUESTION, kites, model, stop=signal)

    answer = asyncio.run(run())
    assert (answer.status, answer.reason, answer.text) == ("budget_exhausted", "stopped", None)


def test_a_slot_is_waited_for_at_no_cost_also_in_another_thread(hand: Hand) -> None:
    """As the models of an evaluation have a loop of their own, to which the call's context goes over."""
    clock, slots = WorkClock(hand), asyncio.Semaphore(1)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    reached = threading.Event()

    async def call(on_slot: Callable[[], None]) -> None:
        reached.set()
        async with held(slots):
            on_slot()

    async def run() -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(slots.acquire(), loop))
        with clock.serving():
            waits = asyncio.run_coroutine_threadsafe(call(lambda: hand.move(2)), loop)
            await asyncio.to_thread(reached.wait)
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
            hand.move(50)
            loop.call_soon_threadsafe(slots.release)
            await asyncio.wrap_future(waits)

    asyncio.run(run())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert clock.seconds == 2


def test_a_limit_waits_for_a_clock_that_stands_still() -> None:
    left = [0.001]
    looks: list[float] = []

    def seconds_left() -> float:
        looks.append(left[0])
        if len(looks) == 4:
            left[0] = 0.0
        return left[0]

    async def run() -> bool:
        with pytest.raises(TimeoutError):
            async with time_limit(seconds_left) as limit:
                await asyncio.Event().wait()
        return limit.expired()

    assert asyncio.run(run())
    assert looks[:3] == [0.001] * 3 and len(looks) == 4


def test_an_error_cancels_the_others_and_those_that_never_began_warn_of_nothing() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("gone")

    with pytest.raises(KeyError):
        asyncio.run(gather_all([waits(), fails()]))
    assert ended == ["cancelled"]
    calls = [fails(), fails()]

    async def run() -> None:
        together = asyncio.ensure_future(gather_all(calls))
        asyncio.get_running_loop().call_soon(together.cancel)  # after it began, before its calls do
        await together

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert [inspect.getcoroutinestate(call) for call in calls] == [inspect.CORO_CLOSED] * 2
