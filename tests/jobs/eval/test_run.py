"""Runs: every question is asked of every contender once, whatever ends the run or a question in between."""

from __future__ import annotations

import asyncio
import gc
import io
import itertools
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.errors import ModelRejected
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.protocol.question import Question
from kinodex.agent.traces.events import Decided, Event, Expanded, Scored
from kinodex.agent.variants.eea.scores import reward_entropy
from kinodex.evaluation import evaluate, show_progress
from kinodex.index.spaces.thread_pools import thread_pools
from kinodex.jobs import models_elsewhere
from kinodex.jobs.errors import CostReached, UsageError
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import ANSWERS, open_for_append, read_items, read_plan, read_results, read_run, trace_file
from kinodex.jobs.eval.report import as_json
from kinodex.jobs.eval.results import ItemInput, ItemResult, Solve, SolvedItem
from kinodex.jobs.eval.run import RunOptions, Tally, run
from kinodex.jobs.eval.solve import SearchRecorder, _one_thread
from kinodex.jobs.model_loop import ModelLoop
from tests.support.command import Kinodex, bad
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library
from tests.support.runs.eval_runs import ALL, ANSWER, FILMS, asked, at, caption_library, command, write_questions
from tests.support.runs.solved_runs import answer, item, plan_of, write_run
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.world.benchmark import SKETCHES

# `kinodex eval run`: every question is asked of every contender once, whatever ends the run in between.


@pytest.fixture
def blind(place: Path, server: ChatServer, tmp_path: Path) -> tuple[object, ...]:
    """The command that asks a server's model alone, into the folder `run`."""
    return command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))


def test_every_contender_is_asked_every_question_once_and_never_again(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--traces", *at(server, tmp_path))
    assert kinodex(*options).code == 0
    out, plan = tmp_path / "run", read_plan(tmp_path / "run")
    assert [each.name for each in plan.contenders] == ["uniform:frames=3", "similarity", "blind", "random"]
    assert {item.item_id for item in read_items(out)} == ALL
    for contender in plan.contenders:
        assert sorted(asked(out, contender.name)) == sorted(ALL)
        assert all(trace_file(out, contender.name, item_id).exists() for item_id in ALL)
    assert len(server.seen) == 2 * len(ALL)
    before = (out / ANSWERS).read_bytes()
    assert kinodex(*options).code == 0
    assert (out / ANSWERS).read_bytes() == before
    assert len(server.seen) == 2 * len(ALL)


def test_uniform_gets_as_many_frames_as_the_first_agent_needed(place, kinodex, server, tmp_path):
    options = ("--agent", "videotree", *at(server, tmp_path))
    server.reply = lambda body: {"relevances": [{"cluster": 1, "relevance": 3}]} if "relevance" in str(body) else ANSWER
    kinodex(*command(place, tmp_path / "run", *options, "--limit", "4"))
    records = read_results(tmp_path / "run")
    of_tree = [each.ledger.frames_with_kept for each in records if each.contender == "videotree"]
    of_uniform = [each for each in records if each.contender == "uniform, as many frames as videotree"]
    assert len(of_tree) == len(of_uniform) == 4
    last_of_tree = max(number for number, each in enumerate(records) if each.contender == "videotree")
    assert last_of_tree < min(number for number, each in enumerate(records) if each in of_uniform)
    assert {each.ledger.frames_with_kept for each in of_uniform} == {round(sum(of_tree) / 4)}


def refusing(some: str):
    """A server's reply that refuses the requests in which some text stands."""

    def reply(body: dict) -> dict | Behaviour:
        return failing(400, "this is not to be asked") if some in json.dumps(body) else ANSWER

    return reply


def test_a_model_that_never_makes_sense_ends_the_run_and_a_mended_one_is_asked_again(place, kinodex, server, tmp_path):
    """The cache does not answer for it."""
    server.reply = lambda body: "Lorem ipsum."
    model = "--model", "tester", "--base-url", server.base_url, "--cache"
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *model, "--at-once", "2")
    ran = kinodex(*options, "--max-senseless", "3")
    assert ran.code == 6, ran
    assert "blind got no usable reply to 3 questions in a row; the last: no reply of tester" in ran.error_line
    assert "run again with --retry-errors, or raise --max-senseless" in ran.error_line
    assert "`kinodex doctor --base-url URL`" in ran.error_line
    kept = read_results(tmp_path / "run")
    assert 3 <= len(kept) < len(ALL)
    assert {(each.status, each.senseless, each.error) for each in kept} == {("invalid", True, "")}
    server.reply = lambda body: ANSWER
    assert kinodex(*options, "--retry-errors").code == 0
    found = read_results(tmp_path / "run")
    assert len(found) == len(ALL)
    assert {(each.status, each.senseless) for each in found} == {("answered", False)}


def one_each(server: ChatServer) -> tuple[object, ...]:
    """Options that ask a server's model, of which each call costs 1."""
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    server.reply = lambda body: Behaviour(json.dumps(ANSWER), usage=usage)
    return "--model", "tester", "--base-url", server.base_url, "--input-price", "1000000"


def test_a_run_stops_at_a_cost_and_goes_on(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", "--no-cache", *one_each(server))
    stopping = (*options, "--stop-at-cost", "3", "--at-once", "1")
    ran = kinodex(*stopping)
    assert ran.code == 5, ran
    assert "and --stop-at-cost is 3; all answers are kept: run again to go on" in ran.error_line
    assert "of 12 answers, blind " in ran.out
    assert 3 <= len(asked(tmp_path / "run", "blind")) <= 4, "two are under way"
    bad(kinodex, *stopping, code=5, says="--stop-at-cost is 3")
    assert 6 <= len(asked(tmp_path / "run", "blind")) <= 8, "what earlier runs cost does not count"
    bad(kinodex, *options, code=2, says="number of requests at once was 1 and is now 32")
    assert kinodex(*options, "--at-once", "1").code == 0
    assert sorted(asked(tmp_path / "run", "blind")) == sorted(ALL)
    assert len(server.seen) == len(ALL)


def test_a_cost_that_is_never_reached_is_refused(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls")
    priced, roles = one_each(server), tmp_path / "roles.toml"
    for amount in ("0", "-1", "nan", "inf"):
        bad(kinodex, *options, *priced, "--stop-at-cost", amount, code=2, says=f"got --stop-at-cost {amount}")
    stop, says = ("--stop-at-cost", "3"), "got --stop-at-cost without prices"
    bad(kinodex, *options, *priced[:-2], *stop, code=2, says=says)
    bad(kinodex, *command(place, tmp_path / "run", "--agent", "random"), "--input-price", "1", *stop, code=2, says=says)
    roles.write_text(f'[default]\nmodel = "tester"\nbase_url = "{server.base_url}"\n')
    bad(kinodex, *options, "--models", roles, *stop, code=2, says=says)
    assert not (tmp_path / "run").exists()
    roles.write_text(roles.read_text() + "price = { output = 1000000 }\n")
    assert kinodex(*options, "--models", roles, "--stop-at-cost", "1e9").code == 0


def test_progress_tells_how_far_each_contender_is_off_a_terminal(blind, kinodex, server, tmp_path):
    assert f"12 of 12 answers; kept in {tmp_path / 'run'}" in kinodex(*blind).out
    first, second, *_ = read_results(tmp_path / "run")
    console = Console(record=True, width=200, force_terminal=False)
    tally = Tally({"blind": 12, "random": 12}, Counter(random=12))
    with show_progress(console, tally, every_s=0.0) as tell:
        tell(first)
        tell(second)
    lines = console.export_text().splitlines()
    assert [line.rsplit(", ", 1)[0] for line in lines] == [f"{12 + n} of 24 answers, blind {n}" for n in (1, 2)]
    assert lines[-1].endswith("left")
    out = io.StringIO()
    unseen = Tally({"blind": 12, "random": 12}, Counter(random=12))
    with show_progress(Console(file=out, quiet=True), unseen, every_s=0.0) as tell:
        tell(first)
    assert (out.getvalue(), unseen.done["blind"], unseen.fresh) == ("", 1, 1)


# One question's failure is that question's, whatever it is; and a limit of money holds for what is in flight.


HARD = "harbour-2"
AGENT = """
import asyncio
from dataclasses import replace

from kinodex.agent.variants.baselines.uniform import UNIFORM

async def run(session, parameters):
    answer = await UNIFORM.run(session, parameters)
    if "number 2?" in session.question.text and session.environment.videos[0].title == "harbour":
        {fault}
    return answer

MINE = replace(UNIFORM, name="mine", run=run)
"""
FAULTS = {
    "exception": ("1 / 0", "ZeroDivisionError: division by zero ("),
    "no answer": ("return None", "the agent returned NoneType"),
    "hang": ("await asyncio.Event().wait()", "the agent 'mine' waited for 3 s"),
}
"""An agent's own faults, and what the result says of them."""
REPLIES = {
    "lasting 500": (failing(500, "boom"), "fails (500: boom)"),
    "no completion": (Behaviour(raw=b"{broken"), "sent no chat completion"),
    "refused": (failing(400, "this is not to be asked"), "not to be asked"),
}
UNREACHABLE = ("lasting 500", "no completion")
USAGE = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}


def is_hard(body: dict) -> bool:
    said = json.dumps(body)
    return "number 2?" in said and "over the harbour" in said


def answers_but(hard: Behaviour | None) -> Callable[[dict], Behaviour]:
    good = Behaviour(json.dumps(ANSWER), usage=USAGE)
    return lambda body: hard if hard is not None and is_hard(body) else good


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FAULTS, *REPLIES])
def test_one_question_that_fails_takes_no_other_with_it(kind, place, kinodex, server, tmp_path, monkeypatch):
    monkeypatch.setattr("kinodex.agent.ask.HANG_S", 3.0)
    fault, says = FAULTS.get(kind, ("pass", ""))
    hard, says = REPLIES.get(kind, (None, says))
    (tmp_path / "mine.py").write_text(AGENT.format(fault=fault))
    server.reply = answers_but(hard)
    models = at(server, tmp_path)
    with (tmp_path / "roles.toml").open("a") as roles:
        roles.write("price = {input = 1_000_000}\n")
    options = command(place, tmp_path / "run", "--agent", f"{tmp_path / 'mine.py'}", "--no-controls", *models)
    ran = kinodex(*options, "--at-once", 8)
    assert ran.code == 0, ran
    assert "12 of 12 answers, cost 1" in ran.out and ", 1 without an answer" in ran.out
    results = {each.item_id: each for each in read_results(tmp_path / "run")}
    assert {name for name, each in results.items() if each.error} == {HARD}
    assert says in results[HARD].error
    assert results[HARD].ledger.cost == (1.0 if kind in FAULTS else 0.0), "what was paid until then"
    assert {each.option for name, each in results.items() if name != HARD} == {0}
    server.seen.clear()
    assert kinodex(*options, "--at-once", 8).code == 0
    assert all(is_hard(each.body) for each in server.seen)
    assert bool(server.seen) == (kind in UNREACHABLE), "a server that failed may do better, a refusal stays"
    server.reply = answers_but(None)
    server.seen.clear()
    assert kinodex(*options, "--at-once", 8, "--retry-errors").code == 0
    assert [is_hard(each.body) for each in server.seen] == [True]
    assert (kind in REPLIES) == (not any(each.error for each in read_results(tmp_path / "run")))


def test_who_is_gone_is_told_from_who_cannot_bear_one_question(
    place: Path, kinodex: Kinodex, server: ChatServer, tmp_path: Path
) -> None:
    """Three different questions in a row get no reply; those in flight at that moment are awaited and kept."""

    places_in_line = itertools.count(1)  # not len(server.seen), which a request that comes meanwhile has moved on

    def three_then_slow(body: dict) -> Behaviour:
        return failing(500, "gone") if next(places_in_line) <= 3 else Behaviour(json.dumps(ANSWER), after_s=0.5)

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

    def solve(self, system: Contender, sample: ItemInput) -> Awaitable[SolvedItem]:
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

    async def _answer(self, system: Contender, sample: ItemInput, cost: float) -> SolvedItem:
        for _ in range(1 + round(cost)):
            await asyncio.sleep(0)
        return SolvedItem(result_of(system, sample, cost))


def result_of(system: Contender, sample: ItemInput, cost: float) -> ItemResult:
    return answer(sample.item_id, 0, system.name, ledger=Ledger(calls=1, cost=cost))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
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
    solver = Costly(tmp_path, costs, chance.uniform(0.05, 60.0))
    options = RunOptions(items=chance.choice([1, 4, 64]), stop_at_cost=solver.limit)
    try:
        run(plan, asked, solver.open(), tmp_path, options)
        ended = False
    except CostReached as error:
        ended = True
        assert f"--stop-at-cost is {solver.limit:g}" in str(error)
    assert sum(cost for _, cost in solver.begun) <= solver.limit + solver.surprise + 1e-6
    assert ended == (len(read_results(tmp_path)) < 2 * len(asked))


# The folder of a run: torn lines, two writers, and places where no folder can be.


def test_a_torn_last_line_is_asked_again_and_nothing_else(blind, kinodex, server, tmp_path):
    kinodex(*blind)
    answers = tmp_path / "run" / ANSWERS
    whole = answers.read_bytes()
    answers.write_bytes(whole[:-20])
    server.seen.clear()
    assert kinodex(*blind).code == 0
    assert len(server.seen) == 1
    assert sorted(asked(tmp_path / "run", "blind")) == sorted(ALL)


def test_two_processes_do_not_write_the_same_run(place, kinodex, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "random", "--no-controls")
    assert kinodex(*options).code == 0
    with open_for_append(tmp_path / "run" / ANSWERS):
        bad(kinodex, *options, code=2, says="another process is writing")


# The record of a search: its rounds with their entropies, the segments explored, and the frames looked at.


QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory):
    films = {"film": film(1, 600, {300: ("red kite desert", 12)})}
    return environment_of(make_library(tmp_path_factory.mktemp("watched"), films))


def watched(environment, agent: str, script=explorer, **settings) -> tuple[SearchRecorder, list[Event]]:
    watcher, events = SearchRecorder(environment), []

    def tell(event: Event) -> None:
        watcher(event)
        events.append(event)

    parameters = replace(default_parameters(agent, environment), **settings)
    model = ScriptedModel(script)
    budget = Budget(rounds=3)
    asyncio.run(ask(QUESTION, environment, model, agent=agent, parameters=parameters, budget=budget, on_event=tell))
    return watcher, events


def test_a_round_of_eea_has_both_entropies_and_what_was_explored_next(environment):
    watcher, events = watched(environment, "eea")
    scored = [event for event in events if isinstance(event, Scored)]
    explored = [event.parent for event in events if isinstance(event, Expanded)]
    assert len(watcher.rounds) == len(scored) == 3
    for kept, event in zip(watcher.rounds, scored, strict=True):
        assert kept.intrinsic == reward_entropy([each.reward for each in event.candidates])
        assert kept.fused == reward_entropy([100 * each.fused for each in event.candidates])
    for kept, segment in zip(watcher.rounds, explored[1:], strict=False):
        assert kept.chosen is not None
        assert (kept.chosen.start_s, kept.chosen.end_s) == (segment.start_s, segment.end_s)
        assert kept.best == kept.chosen, "this policy explores what has the highest score"
    assert (watcher.rounds[-1].chosen, watcher.rounds[-1].best) == (None, None), "the last round ends the search"


# One evaluation from Python, with few arguments, as the command makes it.


def test_waiting_for_a_slot_is_no_work_of_a_question(place, kinodex, server, tmp_path):
    """Twelve questions wait for one slot, longer than each of them may work."""
    server.reply = lambda body: Behaviour(json.dumps(ANSWER), after_s=0.12)
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path, at_once=1))
    assert kinodex(*options, "--max-seconds", "1", "--at-once", 16).code == 0
    assert {each.status for each in read_results(tmp_path / "run")} == {"answered"}


def test_an_answer_keeps_what_was_looked_at_and_what_it_cost(place, kinodex, server, tmp_path):
    prices = ("--input-price", "1000000", "--output-price", "0")
    model = ("--model", "tester", "--base-url", server.base_url, "--no-cache", *prices)
    kinodex(*command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--no-controls", *model))
    for record in read_results(tmp_path / "run"):
        assert (record.status, record.option, record.rounds, record.error) == ("answered", 0, 1, "")
        assert [(each.start_s, each.end_s) for each in record.visited] == [(8.0, 10.0), (14.0, 16.0), (22.0, 24.0)]
        assert [(each.start_s, each.end_s) for each in record.evidence] == [(8.0, 10.0)]
        assert record.ledger.cost == record.ledger.input_tokens > 0


def test_too_many_refusals_end_the_run(blind, kinodex, server, tmp_path):
    server.reply = refusing("number")
    bad(kinodex, *blind, "--max-errors", "3", "--at-once", "2", code=5, says="this is not to be asked")
    assert 3 <= len(asked(tmp_path / "run", "blind")) < len(ALL)


def test_who_waits_for_others_is_not_begun_after_the_cost(place, kinodex, server, tmp_path):
    model = one_each(server)
    tree = {"relevances": [{"cluster": 1, "relevance": 3}]}
    answering = server.reply
    server.reply = lambda body: tree if "relevance" in str(body) else answering(body)
    options = command(place, tmp_path / "run", "--agent", "videotree", "--no-cache", *model, "--limit", "2")
    bad(kinodex, *options, "--stop-at-cost", "0.5", code=5, says="--stop-at-cost")
    assert [each.contender for each in read_results(tmp_path / "run")] == ["videotree"]


def test_replies_from_the_cache_count_towards_the_cost(place, kinodex, server, tmp_path):
    options = ("--agent", "blind", "--no-controls", *one_each(server))
    assert kinodex(*command(place, tmp_path / "anew", *options)).code == 0
    before = len(server.seen)
    again = command(place, tmp_path / "cached", *options, "--stop-at-cost", "3", "--at-once", "1")
    bad(kinodex, *again, code=5, says="--stop-at-cost is 3")
    assert len(server.seen) == before


def test_questions_without_known_answers_are_written_as_they_are_submitted(place, kinodex, tmp_path):
    rows = [
        {"q_uid": f"{film}", "google_drive_id": "x", "question": "What?"}
        | {f"option {n}": f"they do {n}" for n in range(5)}
        for film in FILMS
    ]
    (tmp_path / "questions.json").write_text(json.dumps(rows))
    options = ("eval", "egoschema-full", place / "library", "--annotations", tmp_path, "--out", tmp_path / "run")
    assert kinodex(*options, "--agent", "random", "--no-controls", "--no-page").code == 0
    submitted = json.loads((tmp_path / "run" / "submission-random.json").read_text())
    assert submitted == {each.item_id: each.option for each in read_results(tmp_path / "run")}
    assert set(submitted) == set(FILMS)


def test_who_got_no_reply_is_asked_again_after_all_others(tmp_path: Path) -> None:
    asked = [item(f"q{n}") for n in range(5)]
    earlier = [replace(answer("q1", None), error="no reply", unreachable=True), answer("q2")]
    write_run(tmp_path, asked, earlier)
    begun: list[str] = []

    @asynccontextmanager
    async def solver() -> AsyncIterator[Solve]:
        async def solve(system: Contender, sample: ItemInput) -> SolvedItem:
            begun.append(sample.item_id)
            return SolvedItem(result_of(system, sample, 0.0))

        yield solve

    run(plan_of(asked), asked, solver(), tmp_path, RunOptions(items=1))
    assert begun == ["q0", "q3", "q4", "q1"]


def test_a_place_where_no_folder_can_be_is_refused(place, kinodex, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out, says in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "run", "Not a directory")):
        bad(kinodex, *command(place, out, "--agent", "random"), code=2, says=says)
    assert (tmp_path / "file").read_text() == "mine"


def test_vca_fuses_nothing_and_without_rewards_there_is_no_best(environment):
    watcher, _ = watched(environment, "vca")
    assert [kept.fused for kept in watcher.rounds] == [None] * 3
    assert all(kept.intrinsic is not None for kept in watcher.rounds)
    watcher, events = watched(environment, "vca", reward="none")
    explored = [event for event in events if isinstance(event, Decided) and event.segment is not None]
    assert len(explored) == 2
    assert [kept.intrinsic for kept in watcher.rounds] == [None] * 3
    assert [kept.chosen is not None for kept in watcher.rounds] == [True, True, False]
    assert [kept.best for kept in watcher.rounds] == [None] * 3


def test_threads_and_the_switch_interval_are_given_back_by_the_last_run() -> None:
    torch = pytest.importorskip("torch")

    def state() -> tuple[object, ...]:
        blas = {each["num_threads"] for each in thread_pools().info() if each["user_api"] == "blas"}
        return torch.get_num_threads(), blas, pytest.approx(sys.getswitchinterval())

    before = state()
    first, second = ([_one_thread.held(), models_elsewhere.quick_switches.held()] for _ in range(2))
    for held in (*first, *second):
        held.__enter__()
    for held in first:
        held.__exit__(None, None, None)
    assert state() == (1, {1}, models_elsewhere.SWITCH_S)
    for held in second:
        held.__exit__(None, None, None)
    assert state() == before


def test_an_error_that_comes_after_its_caller_has_gone_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_late() -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)  # as closing a connection takes some steps of the loop
            ended.set()
            raise ModelRejected("too late")

    async def gone() -> None:
        call = asyncio.ensure_future(loop.reply(fails_late()))
        await asyncio.to_thread(began.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    began, ended = threading.Event(), threading.Event()
    with ModelLoop() as loop:
        asyncio.run(gone())
    assert ended.is_set(), "the loop outlives its calls"
    gc.collect()
    assert caplog.text == ""


FILM = ("harbour",)


def test_a_run_from_python_is_the_run_of_the_command(tmp_path: Path) -> None:
    caption_library(tmp_path / "library", FILM)
    questions, out = write_questions(tmp_path, FILM), tmp_path / "run"
    report = evaluate(tmp_path / "library", SKETCHES, questions, out, agents=["random"], controls=False, limit=3)
    assert [(each.name, each.accuracy.questions) for each in report.standings] == [("random", 3)]
    assert report.complete
    assert (out / "report.json").read_bytes() == as_json(report)
    assert len(read_run(out).records) == 3
    again = evaluate(tmp_path / "library", SKETCHES, questions, out, agents=["random"], controls=False, limit=3)
    assert again == report
    with pytest.raises(UsageError, match="holds another run"):
        evaluate(tmp_path / "library", SKETCHES, questions, out, agents=["random"], controls=False)


def test_an_endpoint_that_nobody_reaches_is_an_error_however_few_are_asked(
    place: Path, kinodex: Kinodex, server: ChatServer, tmp_path: Path
) -> None:
    server.reply = lambda body: failing(503, "loading")
    options = command(place, tmp_path / "run", "--agent", "uniform:frames=3", "--limit", "1", *at(server, tmp_path))
    bad(kinodex, *options, code=5, says="none of the questions got a reply, the last because")
