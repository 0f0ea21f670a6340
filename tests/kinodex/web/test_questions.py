"""Questions of a server: limits that no request exceeds, keys that survive a restart, ends that are kept."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.catalogue import find_variant
from kinodex.agent.errors import BadSettings, KeyMissing, ModelUnreachable, UnknownAgent
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from kinodex.requests import Ask
from kinodex.server.responses import NotGiven
from kinodex.web.asking_thread import AskingThread
from kinodex.web.daily_costs import spend, spent_today
from kinodex.web.failures import QuestionFault
from kinodex.web.kept_traces import Kept
from kinodex.web.questions import MONEY_SPENT, MoneySpent, Questions, TooManyQuestions
from kinodex.web.running import Running
from kinodex.web.serve_settings import ServeSettings
from tests.support.servers.chat_server import ChatServer, Reply
from tests.support.servers.gate import Gate
from tests.support.servers.rule_server import MODEL, Rules

BIRD = Ask(question="What colour is the bird at sea?", options=("red", "black", "white"))
ANSWER = Answer("answered", "red", None, (), 1, Ledger())


@pytest.fixture(scope="module")
def rules() -> Rules:
    return Rules()


@contextmanager
def asking(
    library: Path, traces: Path, choice: ModelChoice | None = None, budget: Budget | None = None, **settings: Any
) -> Iterator[Questions]:
    agent = find_variant(settings.pop("agent", "eea"))
    chosen = ServeSettings(choice or ModelChoice(cache=False), agent, traces, budget or Budget(), **settings)
    questions = Questions([Library.open(str(library))], chosen)
    try:
        yield questions
    finally:
        questions.close()


@contextmanager
def priced(reply: Reply, tokens_cost: float = 10.0) -> Iterator[ModelChoice]:
    """A model that costs so much for a million tokens in or out."""
    with ChatServer(reply, models=[MODEL]) as server:
        yield ModelChoice(MODEL, server.base_url, None, tokens_cost, tokens_cost, cache=False)


def test_an_answer_is_kept_and_keys_go_on_after_a_restart(library, tmp_path):
    with asking(library, tmp_path) as questions, asking(library, tmp_path) as beside:
        running = questions.start(0, BIRD)
        answer = asyncio.run(running.finished())
        assert (running.key, running.state, answer.letter) == ("q1", "done", "B")
        kept = questions.find("q1")
        assert isinstance(kept, Kept) and kept.answer == answer and kept.records == running.records
        assert [each.start(0, BIRD).key for each in (beside, questions)] == ["q2", "q3"], "of servers side by side"
    facts = next(questions.kept.folder(0).glob("q2.json"))
    written = json.loads(facts.read_text())
    facts.write_text(json.dumps(written | {"state": "running", "text": None}))  # as a server that was killed leaves it
    with asking(library, tmp_path) as again:
        assert again.find("q1").answer == answer
        *_, killed, row = again.listing(0)
        assert (row["key"], row["letter"], row["state"]) == ("q1", "B", "done")
        assert killed["state"] == "failed" and "before the answer" in killed["error"]
        assert again.records("q2")[0]["event"] == "RunStarted"
        with pytest.raises(UsageError, match="no answer in this library"):
            again.start(0, Ask(question="And then?", follow_up="q2"))
        assert again.start(0, BIRD).key == "q4"


def test_a_close_stops_what_is_under_way_and_keeps_it(library, tmp_path, rules):
    gate = Gate(rules)
    with priced(gate) as choice:
        with asking(library, tmp_path, choice) as questions:
            running = questions.start(0, BIRD)
            assert gate.reached.wait(60)
        assert running.state == "done" and running.answer is not None and running.answer.reason == "stopped"
        assert questions.kept.find("q1").state == "done"
        gate.open.set()


def test_the_money_of_a_day_is_the_limit_also_after_a_restart(library, tmp_path, rules):
    with priced(rules) as choice:
        with asking(library, tmp_path, choice, usd_a_day=1000.0) as questions:
            answer = asyncio.run(questions.start(0, BIRD).finished())
            assert answer.status == "answered" and spent_today(tmp_path) == pytest.approx(answer.ledger.cost) != 0
        with asking(library, tmp_path, choice, usd_a_day=answer.ledger.cost / 2) as again:
            with pytest.raises(MoneySpent, match="ask again tomorrow") as spent:
                again.start(0, BIRD)
            assert 0 < (spent.value.retry_s or 0) <= 86_400
            assert again.listing(0)[0]["key"] == "q1", "nothing began"


def test_a_question_that_reaches_it_ends_with_what_it_has(library, tmp_path, rules):
    """Its own budget is what the day has left; when others spend that meanwhile, it is stopped."""
    calls = 0

    def reply(body: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            spend(tmp_path, 1000.0)  # by a question of another server of the same folder
        return rules(body)

    with priced(reply) as choice, asking(library, tmp_path, choice, usd_a_day=1000.0) as questions:
        running = questions.start(0, BIRD)
        answer = asyncio.run(running.finished())
        assert (answer.reason, running.state) == (MONEY_SPENT, "done")
        assert calls in (2, 3), "two are sent at the same time"
        assert running.records[0]["budget"]["cost"] == 1000.0


def test_no_request_exceeds_the_limits_of_the_server(library, tmp_path):
    with asking(library, tmp_path, budget=Budget(rounds=2, frames=20, seconds=60.0), at_once=1) as questions:
        larger = BIRD.model_copy(update={"budget": Budget(rounds=9, frames=5, tokens=10**6)})
        running = questions.start(0, larger)
        try:
            with pytest.raises(TooManyQuestions, match="1 question is under way"):
                questions.start(0, BIRD)
        finally:
            asyncio.run(running.finished())
        asyncio.run(questions.start(0, BIRD).finished())
        held = {"rounds": 2, "frames": 5, "tokens": 10**6, "seconds": 60.0, "cost": None}
        assert running.records[0]["budget"] == held
        for number, wrong, error in (
            (1, BIRD, NotGiven),
            (0, BIRD.model_copy(update={"settings": {"nothing": 1}}), BadSettings),
            (0, BIRD.model_copy(update={"follow_up": "q9"}), NotGiven),
        ):
            with pytest.raises(error):
                questions.start(number, wrong)
        assert len(questions.listing(0)) == 2 and questions.kept.new_key() == "q3", "what makes no sense takes no key"


AGENT = """from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.uniform import UNIFORM
async def broken(session, parameters):
    raise RuntimeError('inside')
MINE = Variant('mine', 'mine', {run}, UNIFORM.parameters, ('vision',))
"""


def test_agents_by_name_alone_but_the_own_one_of_the_server(library, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(AGENT.format(run="UNIFORM.run"))
    with asking(library, tmp_path, agent=str(file)) as questions:
        assert (
            asyncio.run(questions.start(0, BIRD.model_copy(update={"agent": "mine"})).finished()).status == "answered"
        )
        for name in (str(file), "mine.py", "kinodex.agent.variants.baselines.uniform:UNIFORM"):
            with pytest.raises(UnknownAgent):
                questions.start(0, BIRD.model_copy(update={"agent": name}))


def test_a_fault_of_an_agent_is_said_without_its_insides(library, tmp_path, capfd):
    file = tmp_path / "broken.py"
    file.write_text(AGENT.format(run="broken"))
    with asking(library, tmp_path, agent=str(file)) as questions:
        running = questions.start(0, BIRD.model_copy(update={"agent": "mine"}))
        with pytest.raises(QuestionFault, match="a fault of kinodex"):
            asyncio.run(running.finished())
        assert running.state == "failed" and "inside" not in (running.error or "")
        assert questions.listing(0)[0]["error"] == running.error
        assert questions.records(running.key)[0]["event"] == "RunStarted"
    assert "RuntimeError: inside" in capfd.readouterr().err


# One question, as its readers see it: every change, the end, and nothing after it.


def begun() -> Running:
    return Running("q1", 0, Ask(question="What?"), datetime.now(UTC))


async def read(running: Running, since: int = 0, beat_s: float | None = None) -> list[int]:
    return [-1 if version is None else version async for version in running.changes(since, beat_s)]


def test_readers_of_several_loops_see_every_change(library, tmp_path):
    running = begun()

    async def run() -> list[int]:
        reader = asyncio.create_task(read(running))
        for at in range(3):
            running.add({"event": "Decided", "round": at})
            await asyncio.sleep(0)
        running.end(ANSWER)
        return await reader

    versions = asyncio.run(run())
    assert versions == sorted({*versions}) and versions[-1] == running.version == 4
    assert (running.state, running.error, running.answer) == ("done", None, ANSWER)
    assert asyncio.run(read(running, 3)) == [4] and asyncio.run(read(running, 4)) == []
    with asking(library, tmp_path) as questions:
        running = questions.start(0, BIRD)
        seen: list[list[int]] = []
        threads = [threading.Thread(target=lambda: seen.append(asyncio.run(read(running)))) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for versions in seen:
        assert versions == sorted({*versions}) and versions[-1] == running.version > len(running.records)
    assert asyncio.run(read(running)) == [running.version], "one that comes late gets the end alone"


def test_a_silent_question_beats_a_stop_comes_too_late_after_the_end_and_readers_may_leave():
    silent, stopped, left = begun(), begun(), begun()

    async def run() -> list[int]:
        reader = asyncio.create_task(read(silent, beat_s=0.01))
        await asyncio.sleep(0.05)
        silent.end(ModelUnreachable("nobody answers"))
        return await reader

    *beats, end = asyncio.run(run())
    assert len(beats) > 1 and {*beats} == {-1} and end == 1
    assert (silent.state, silent.error) == ("failed", "nobody answers")
    with pytest.raises(ModelUnreachable):
        asyncio.run(silent.finished())

    stopped.stop("the day is over")
    assert (stopped.state, stopped.version) == ("stopping", 1)
    assert stopped.signal.over() == "the day is over" and stopped.signal.over(final=True) is None
    stopped.stop()
    assert stopped.signal.over(final=True) == "the day is over", "the second one leaves no time"
    stopped.end(ANSWER)
    version = stopped.version
    stopped.stop()
    assert stopped.version == version, "nothing has changed"
    assert asyncio.run(stopped.finished()) is ANSWER

    async def look() -> None:
        left.add({})
        changes = left.changes()
        assert await anext(changes) == 1
        await changes.aclose()

    asyncio.run(look())
    left.add({})  # would raise if it woke a reader whose loop is closed
    assert left.version == 2


# The thread of the questions: models of its own loop, calls side by side, an end that waits for nobody for ever.


def test_calls_run_in_one_thread_side_by_side_and_a_close_cancels_what_does_not_end():
    thread, done, places = AskingThread(ModelChoice()), threading.Event(), list[str]()
    began, ended, gate = threading.Event(), threading.Event(), asyncio.Event()

    async def first() -> None:
        places.append(threading.current_thread().name)
        await gate.wait()
        done.set()

    async def second() -> None:
        places.append(threading.current_thread().name)
        gate.set()

    async def hangs() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    for call in (first, second, hangs):
        thread.submit(call)
    assert done.wait(60) and began.wait(60)
    assert places == ["questions", "questions"]
    thread.close(patience_s=0.01)
    assert ended.is_set()


def test_models_that_cannot_be_opened_are_said_at_once_and_leave_no_thread(library, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    before = set(threading.enumerate())
    with pytest.raises(KeyMissing), asking(library, tmp_path, ModelChoice("gpt-4o", cache=False)):
        pass
    assert set(threading.enumerate()) <= before
