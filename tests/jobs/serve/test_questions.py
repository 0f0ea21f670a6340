"""Questions of a server: limits that no request exceeds, keys that survive a restart, ends that are kept."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.ask import find_variant
from kinodex.agent.errors import BadSettings, KeyMissing, UnknownAgent
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.guards import NotGiven
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from kinodex.web.kept import Kept, spend, spent_today
from kinodex.web.questions import (
    MONEY_SPENT,
    AskRequest,
    MoneySpent,
    QuestionFault,
    Questions,
    Running,
    ServeSettings,
    TooManyQuestions,
)
from tests.support.servers.chat_server import ChatServer, Reply, hanging
from tests.support.servers.rule_server import MODEL, Rules

BIRD = AskRequest(0, Question("What colour is the bird at sea?", ("red", "black", "white")))


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


def test_an_answer_is_kept_and_keys_go_on_after_a_restart(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path) as questions:
        running = questions.start(BIRD)
        answer = asyncio.run(running.finished())
        assert (running.key, running.state, answer.letter) == ("q1", "done", "B")
        kept = questions.find("q1")
        assert isinstance(kept, Kept) and kept.answer == answer and kept.records == running.records
    with asking(library, tmp_path) as again:
        assert again.find("q1").answer == answer
        (row,) = again.listing(0)
        assert (row["key"], row["letter"], row["state"]) == ("q1", "B", "done")
        assert again.start(BIRD).key == "q2"


def test_keys_of_servers_side_by_side_differ(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path) as one, asking(library, tmp_path) as other:
        keys = [questions.start(BIRD).key for questions in (one, other, one)]
        assert keys == ["q1", "q2", "q3"]


def test_a_server_that_was_killed_leaves_what_it_had(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path) as questions:
        asyncio.run(questions.start(BIRD).finished())
        facts = next(questions.kept.folder(0).glob("q1.json"))
    written = json.loads(facts.read_text())
    facts.write_text(json.dumps(written | {"state": "running", "text": None}))
    with asking(library, tmp_path) as again:
        (row,) = again.listing(0)
        assert row["state"] == "failed" and "before the answer" in row["error"]
        assert again.records("q1")[0]["event"] == "RunStarted"
        with pytest.raises(UsageError, match="no answer in this library"):
            again.start(AskRequest(0, Question("And then?"), after="q1"))


def test_a_close_stops_what_is_under_way_and_keeps_it(library: Path, tmp_path: Path, rules: Rules) -> None:
    hangs = threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        if '"Decision"' not in json.dumps(body["response_format"]):
            return rules(body)
        hangs.set()
        return hanging(600)

    with priced(reply) as choice:
        with asking(library, tmp_path, choice) as questions:
            running = questions.start(BIRD)
            assert hangs.wait(60)
        assert running.state == "done" and running.answer is not None and running.answer.reason == "stopped"
    with asking(library, tmp_path) as again:
        assert again.listing(0)[0]["state"] == "done"


def test_the_money_of_a_day_is_the_limit_also_after_a_restart(library: Path, tmp_path: Path, rules: Rules) -> None:
    with priced(rules) as choice:
        with asking(library, tmp_path, choice, usd_a_day=1000.0) as questions:
            answer = asyncio.run(questions.start(BIRD).finished())
            assert answer.status == "answered" and spent_today(tmp_path) == pytest.approx(answer.ledger.cost) != 0
        with asking(library, tmp_path, choice, usd_a_day=answer.ledger.cost / 2) as again:
            with pytest.raises(MoneySpent, match="ask again tomorrow") as spent:
                again.start(BIRD)
            assert 0 < (spent.value.retry_s or 0) <= 86_400
            assert again.listing(0)[0]["key"] == "q1", "nothing began"


def test_a_question_that_reaches_it_ends_with_what_it_has(library: Path, tmp_path: Path, rules: Rules) -> None:
    """Its own budget is what the day has left; when others spend that meanwhile, it is stopped."""
    calls = 0

    def reply(body: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            spend(tmp_path, 1000.0)  # by a question of another server of the same folder
        return rules(body)

    with priced(reply) as choice, asking(library, tmp_path, choice, usd_a_day=1000.0) as questions:
        running = questions.start(BIRD)
        answer = asyncio.run(running.finished())
        assert (answer.reason, calls, running.state) == (MONEY_SPENT, 2, "done")
        assert running.records[0]["budget"]["cost"] == 1000.0


def test_no_request_exceeds_the_budget_of_the_server(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path, budget=Budget(rounds=2, frames=20, seconds=60.0)) as questions:
        running = questions.start(AskRequest(0, BIRD.question, budget=Budget(rounds=9, frames=5, tokens=10**6)))
        asyncio.run(running.finished())
    held = {"rounds": 2, "frames": 5, "tokens": 10**6, "seconds": 60.0, "cost": None}
    assert running.records[0]["budget"] == held


def test_as_many_as_allowed_at_once(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path, at_once=1) as questions:
        running = questions.start(BIRD)
        try:
            with pytest.raises(TooManyQuestions, match="1 question is under way"):
                questions.start(BIRD)
        finally:
            asyncio.run(running.finished())
        asyncio.run(questions.start(BIRD).finished())


def test_agents_by_name_alone_but_the_own_one_of_the_server(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from kinodex.agent.variants.base import Variant\n"
        "from kinodex.agent.variants.baselines import UNIFORM\n"
        "MINE = Variant('mine', 'mine', UNIFORM.run, UNIFORM.parameters, ('vision',))\n"
    )
    with asking(library, tmp_path, agent=str(file)) as questions:
        assert asyncio.run(questions.start(AskRequest(0, BIRD.question, agent="mine")).finished()).status == "answered"
        for name in (str(file), "mine.py", "kinodex.agent.variants.baselines:UNIFORM"):
            with pytest.raises(UnknownAgent):
                questions.start(AskRequest(0, BIRD.question, agent=name))


def test_what_makes_no_sense_takes_no_key(library: Path, tmp_path: Path) -> None:
    with asking(library, tmp_path) as questions:
        for wrong, error in (
            (AskRequest(1, BIRD.question), NotGiven),
            (AskRequest(0, BIRD.question, settings={"nothing": 1}), BadSettings),
            (AskRequest(0, BIRD.question, after="q1"), NotGiven),
        ):
            with pytest.raises(error):
                questions.start(wrong)
        assert questions.listing(0) == [] and not list(tmp_path.rglob("q*"))


def test_a_fault_of_an_agent_is_said_without_its_insides(
    library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "from kinodex.agent.variants.base import Variant\n"
        "from kinodex.agent.variants.baselines import UNIFORM\n"
        "async def run(session, parameters):\n    raise RuntimeError('inside')\n"
        "BROKEN = Variant('broken', 'broken', run, UNIFORM.parameters, ())\n"
    )
    with asking(library, tmp_path, agent=str(file)) as questions:
        running = questions.start(AskRequest(0, BIRD.question, agent="broken"))
        with pytest.raises(QuestionFault, match="a fault of kinodex"):
            asyncio.run(running.finished())
        assert running.state == "failed" and "inside" not in (running.error or "")
        assert questions.listing(0)[0]["error"] == running.error
        assert questions.records(running.key)[0]["event"] == "RunStarted"
    assert "RuntimeError: inside" in capfd.readouterr().err


def test_a_model_that_cannot_be_opened_is_said_at_once(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    threads = threading.active_count()
    with pytest.raises(KeyMissing), asking(library, tmp_path, ModelChoice("gpt-4o", cache=False)):
        pass
    assert threading.active_count() == threads


def test_readers_of_several_loops_see_every_change(library: Path, tmp_path: Path) -> None:
    async def read(running: Running) -> list[int]:
        return [version async for version in running.changes() if version is not None]

    with asking(library, tmp_path) as questions:
        running = questions.start(BIRD)
        seen: list[list[int]] = []
        threads = [threading.Thread(target=lambda: seen.append(asyncio.run(read(running)))) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for versions in seen:
        assert versions == sorted(set(versions)) and versions[-1] == running.version == len(running.records) + 1
    assert asyncio.run(read(running)) == [running.version], "one that comes late gets the end alone"
