"""One question's failure is that question's, whatever it is; and a limit of money holds for what is in flight."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from kinodex.agent.limits import Ledger
from kinodex.jobs.errors import CostReached
from kinodex.jobs.eval.folder import ANSWERS, read_results
from kinodex.jobs.eval.run import RunOptions, run
from kinodex.jobs.eval.systems import SampleInput, SampleResult, Solve, SolvedSample, System
from tests.support.command import Kinodex, bad
from tests.support.runs.eval_runs import ALL, ANSWER, at, command
from tests.support.runs.solved_runs import answer, item, plan_of, write_run
from tests.support.servers.chat_server import Behaviour, ChatServer, failing

HARD = "harbour-2"
AGENT = """
import asyncio
from dataclasses import replace

from kinodex.agent.variants.baselines import UNIFORM

class Odd(Exception):
    def __init__(self, one, other):
        super().__init__("odd")

async def run(session, parameters):
    answer = await UNIFORM.run(session, parameters)
    if "number 2?" in session.question.text and session.environment.videos[0].title == "harbour":
        {fault}
    return answer

MINE = replace(UNIFORM, name="mine", run=run)
"""
FAULTS = {
    "exception": ("1 / 0", "ZeroDivisionError: division by zero ("),
    "cannot be unpickled": ("raise Odd(1, 2)", "Odd: odd ("),
    "out of memory": ("raise MemoryError('no room')", "MemoryError: no room ("),
    "no answer": ("return None", "the agent returned NoneType"),
    "hang": ("await asyncio.Event().wait()", "the agent 'mine' waited for 0.5 s"),
}
"""An agent's own faults, and what the result says of them."""
REPLIES = {
    "lasting 500": (failing(500, "boom"), "fails (500: boom)"),
    "time-out": (Behaviour(json.dumps(ANSWER), after_s=1.5), "no reply from"),
    "no completion": (Behaviour(raw=b"{broken"), "sent no chat completion"),
    "too large": (failing(413, "payload"), "finds the request too large"),
    "refused": (failing(400, "this is not to be asked"), "not to be asked"),
    "filtered": (failing(403, "no"), "refuses"),
}
UNREACHABLE = ("lasting 500", "time-out", "no completion")
USAGE = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}


def is_hard(body: dict) -> bool:
    said = json.dumps(body)
    return "number 2?" in said and "over the harbour" in said


def answers_but(hard: Behaviour | None) -> Callable[[dict], Behaviour]:
    good = Behaviour(json.dumps(ANSWER), usage=USAGE)
    return lambda body: hard if hard is not None and is_hard(body) else good


@pytest.mark.parametrize("kind", [*FAULTS, *REPLIES])
@pytest.mark.parametrize("at_once", [1, 8])
def test_one_question_that_fails_takes_no_other_with_it(
    kind: str,
    at_once: int,
    place: Path,
    kinodex: Kinodex,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kinodex.agent.ask.HANG_S", 0.5)
    fault, says = FAULTS.get(kind, ("pass", ""))
    hard, says = REPLIES.get(kind, (None, says))
    (tmp_path / "mine.py").write_text(AGENT.format(fault=fault))
    server.reply = answers_but(hard)
    models = at(server, tmp_path, timeout_s=1.0)
    with (tmp_path / "roles.toml").open("a") as roles:
        roles.write("price = {input = 1_000_000}\n")
    options = command(place, tmp_path / "run", "--agent", f"{tmp_path / 'mine.py'}", "--no-controls", *models)
    ran = kinodex(*options, "--at-once", at_once)
    assert ran.code == 0, ran
    assert "12 of 12 answers, cost 1" in ran.out and ", 1 without an answer" in ran.out
    results = {each.item_id: each for each in read_results(tmp_path / "run")}
    assert {name for name, each in results.items() if each.error} == {HARD}
    assert says in results[HARD].error
    assert results[HARD].ledger.cost == (1.0 if kind in FAULTS else 0.0), "what was paid until then"
    assert {each.option for name, each in results.items() if name != HARD} == {0}
    server.seen.clear()
    assert kinodex(*options, "--at-once", at_once).code == 0
    assert all(is_hard(each.body) for each in server.seen)
    assert bool(server.seen) == (kind in UNREACHABLE), "a server that failed may do better, a refusal stays"
    server.reply = answers_but(None)
    server.seen.clear()
    assert kinodex(*options, "--at-once", at_once, "--retry-errors").code == 0
    assert [is_hard(each.body) for each in server.seen] == [True]
    assert (kind in REPLIES) == (not any(each.error for each in read_results(tmp_path / "run")))


def test_who_is_gone_is_told_from_who_cannot_bear_one_question(
    place: Path, kinodex: Kinodex, server: ChatServer, tmp_path: Path
) -> None:
    """Three different questions in a row get no reply; those in flight at that moment are awaited and kept."""

    def three_then_slow(body: dict) -> Behaviour:
        place_in_line = len(server.seen)
        return failing(500, "gone") if place_in_line <= 3 else Behaviour(json.dumps(ANSWER), after_s=0.5)

    server.reply = three_then_slow
    options = command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--no-controls", *at(server, tmp_path))
    bad(kinodex, *options, "--at-once", 4, code=5, says="3 different questions in a row got no reply, the last because")
    results = read_results(tmp_path / "run")
    assert sum(each.unreachable for each in results) == 3
    assert 8 <= len(server.seen) == len(results) < len(ALL), "eight were under way, and nothing more was begun after"
    server.reply = answers_but(None)
    assert kinodex(*options, "--at-once", 4).code == 0
    asked = [json.loads(line)["item_id"] for line in (tmp_path / "run" / ANSWERS).read_text().splitlines()]
    again = {name for name in asked if asked.count(name) > 1}
    assert again == {each.item_id for each in results if each.unreachable}
    assert set(asked) == ALL and len(asked) == len(ALL) + 3


def test_who_got_no_reply_is_asked_again_after_all_others(tmp_path: Path) -> None:
    asked = [item(f"q{n}") for n in range(5)]
    earlier = [replace(answer("q1", None), error="no reply", unreachable=True), answer("q2")]
    write_run(tmp_path, asked, earlier)
    begun: list[str] = []

    @asynccontextmanager
    async def solver() -> AsyncIterator[Solve]:
        async def solve(system: System, sample: SampleInput) -> SolvedSample:
            begun.append(sample.item_id)
            return SolvedSample(result_of(system, sample, 0.0))

        yield solve

    run(plan_of(asked), asked, solver(), tmp_path, Console(quiet=True), RunOptions(samples=1))
    assert begun == ["q0", "q3", "q4", "q1"]


def test_an_endpoint_that_nobody_reaches_is_an_error_however_few_are_asked(
    place: Path, kinodex: Kinodex, server: ChatServer, tmp_path: Path
) -> None:
    server.reply = lambda body: failing(503, "loading")
    options = command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--limit", "1", *at(server, tmp_path))
    bad(kinodex, *options, code=5, says="no question got an answer, the last because")


@dataclass
class Costly:
    """Answers of made-up costs; what is known when one begins is what the run has written."""

    out: Path
    costs: dict[tuple[str, str], float]
    limit: float
    begun: list[tuple[str, float]] = field(default_factory=list)
    surprise: float = 0.0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Solve]:
        yield self.solve

    def solve(self, system: System, sample: SampleInput) -> Awaitable[SolvedSample]:
        """Check that this sample and those in flight fit at the worst that is known of their systems."""
        kept = read_results(self.out)
        worst: dict[str, float] = {}
        for each in kept:
            worst[each.contender] = max(each.ledger.cost, worst.get(each.contender, 0.0))
        done = Counter(each.contender for each in kept)
        in_flight = Counter(name for name, _ in self.begun) - done + Counter([system.name])
        spent, cost = sum(each.ledger.cost for each in kept), self.costs[system.name, sample.item_id]
        if set(in_flight) <= set(worst):
            assert spent + sum(worst[name] * count for name, count in in_flight.items()) <= self.limit + 1e-6
        else:
            assert in_flight.total() == 1 and spent < self.limit, "the first of a system goes alone"
        self.surprise += max(0.0, cost - worst.get(system.name, 0.0))
        self.begun.append((system.name, cost))
        return self._answer(system, sample, cost)

    async def _answer(self, system: System, sample: SampleInput, cost: float) -> SolvedSample:
        for _ in range(1 + round(cost)):
            await asyncio.sleep(0)
        return SolvedSample(result_of(system, sample, cost))


def result_of(system: System, sample: SampleInput, cost: float) -> SampleResult:
    return answer(sample.item_id, 0, system.name, ledger=Ledger(calls=1, cost=cost))


@pytest.mark.parametrize("seed", range(40))
def test_a_limit_of_money_is_a_reservation(seed: int, tmp_path: Path) -> None:
    """Costs and limits by chance: a run overspends only by what a question costs more than any before it."""
    chance = random.Random(seed)
    asked, names = [item(f"q{n}") for n in range(30)], ("eea", "vca")
    plan = plan_of(asked, names)
    costs = {
        (name, each.item_id): chance.choice([0.1, 1.0, 1.0, chance.expovariate(0.5)])
        for name in names
        for each in asked
    }
    solver, console = Costly(tmp_path, costs, chance.uniform(0.05, 60.0)), Console(quiet=True)
    options = RunOptions(samples=chance.choice([1, 4, 64]), stop_at_cost=solver.limit)
    try:
        run(plan, asked, solver.open(), tmp_path, console, options)
        ended = False
    except CostReached as error:
        ended = True
        assert f"--stop-at-cost is {solver.limit:g}" in str(error)
    assert sum(cost for _, cost in solver.begun) <= solver.limit + solver.surprise + 1e-6
    assert ended == (len(read_results(tmp_path)) < 2 * len(asked))
