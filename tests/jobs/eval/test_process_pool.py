"""Questions asked by several processes: the same records as by one, errors that come through, a process that dies."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelUnknown
from kinodex.agent.limits.budget import Budget
from kinodex.index.errors import NotALibrary
from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.processes import process_solver
from kinodex.jobs.eval.results import ItemInput, RunContext, Solve, SolvedItem
from kinodex.jobs.eval.solve import open_solver
from kinodex.jobs.known_answers import read_known
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.towers.carried import carry_towers
from tests.support.models.tiny_models import TINY, write_model
from tests.support.runs.eval_runs import OWN_AGENT, caption_library, write_questions
from tests.support.servers.chat_server import ChatServer, hanging

pytestmark = pytest.mark.slow

ANSWER = {"action": "answer", "option": "A", "answer": None, "evidence": [1]}
READER = Contender("mine", "elsewhere.py", {"frames": 3}, source=OWN_AGENT)
PROCESSES = 2


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `library` in two spaces, and `questions.jsonl`; it carries a text tower, so no process loads torch."""
    folder = tmp_path_factory.mktemp("eval")
    other = load_space(write_model(folder / "other", TINY), towers="text")
    library = caption_library(folder / "library", ("harbour",))
    library.additions.add_space(other.fingerprint)
    carry_towers(library, other.fingerprint, ["text"])
    write_questions(folder, ("harbour",))
    return folder


@pytest.fixture(scope="module")
def serving() -> Iterator[ChatServer]:
    with ChatServer(lambda body: ANSWER) as server:
        yield server


@pytest.fixture
def server(serving: ChatServer) -> ChatServer:
    """The one that processes ask, as if it were new."""
    serving.reply, serving.models, serving.most_at_once = lambda body: ANSWER, ("tester",), 0
    serving.seen.clear()
    return serving


@dataclass(frozen=True)
class Processes:
    """Processes that ask, which take seconds to begin, and the loop that they belong to."""

    runner: asyncio.Runner
    ask: Solve

    def all(self, asked: Sequence[ItemInput], by: Contender = READER) -> list[SolvedItem]:
        return self.runner.run(together(self.ask, asked, by))


@pytest.fixture(scope="module")
def processes(place: Path, serving: ChatServer) -> Iterator[Processes]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        ask = runner.run(stack.enter_async_context(process_solver(setting_of(place, serving), PROCESSES)))
        yield Processes(runner, ask)
        runner.run(stack.aclose())
    assert children() == []


def setting_of(place: Path, server: ChatServer, **choice: Any) -> RunContext:
    chosen = ModelChoice("tester", server.base_url, cache=False, at_once=4)
    return RunContext(
        str(place / "library"), replace(chosen, **choice), Budget(), traces=True, space=f"local-dir:{place / 'other'}"
    )


def questions(place: Path, count: int) -> list[ItemInput]:
    [video] = Library.open(str(place / "library")).videos()
    known = read_known(place / "questions.jsonl")
    return [ItemInput(str(n), known[n % len(known)].question, (video.video_id,)) for n in range(count)]


async def together(ask: Solve, asked: Sequence[ItemInput], by: Contender = READER) -> list[SolvedItem]:
    return list(await asyncio.gather(*(ask(by, each) for each in asked)))


async def all_asked(who_asks: AbstractAsyncContextManager[Solve], asked: Sequence[ItemInput]) -> list[SolvedItem]:
    async with who_asks as ask:
        return await together(ask, asked)


def without_times(outcome: SolvedItem) -> object:
    ledger = replace(outcome.result.ledger, seconds=0.0, model_seconds=0.0)
    return replace(outcome.result, ledger=ledger)


def space_of(outcome: SolvedItem) -> str:
    """The space that a question was asked in, as its trace says."""
    return str(json.loads(gzip.decompress(outcome.trace or b"").splitlines()[0])["space"])


def test_the_records_are_those_of_one_process(place: Path, server: ChatServer, processes: Processes) -> None:
    asked = questions(place, 8)
    shared = processes.all(asked)
    alone = asyncio.run(all_asked(open_solver(setting_of(place, server)), asked))
    assert [*map(without_times, shared)] == [*map(without_times, alone)]
    assert {each.result.status for each in shared} == {"answered"}
    assert len(server.seen) == 2 * len(asked)
    (_, other) = Library.open(str(place / "library")).spaces()
    assert {space_of(each) for each in shared} == {str(other)}


def test_what_ends_a_run_comes_through(place: Path, server: ChatServer, processes: Processes) -> None:
    server.models = ("another",)
    with pytest.raises(ModelUnknown, match="tester"):
        processes.all(questions(place, 1))
    with pytest.raises(RuntimeError, match="Odd: odd"):
        processes.all(questions(place, 4)[3:], FAULTY)
    with pytest.raises(NotALibrary):
        asyncio.run(all_asked(process_solver(replace(setting_of(place, server), library="none"), 1), []))


def test_questions_of_a_process_that_died_are_asked_again_in_another(
    place: Path, server: ChatServer, processes: Processes
) -> None:
    asked = questions(place, 4)

    async def run() -> list[SolvedItem]:
        first = await processes.ask(READER, asked[0])
        server.reply = lambda body: hanging(2.0)
        under_way = [asyncio.ensure_future(processes.ask(READER, each)) for each in asked[1:]]
        while len(server.seen) < len(asked):
            await asyncio.sleep(0.05)
        server.reply = lambda body: ANSWER
        os.kill(children()[0], signal.SIGKILL)
        return [first, *[await each for each in under_way]]

    assert [each.result.option for each in processes.runner.run(run())] == [0] * len(asked)


def children() -> list[int]:
    """The processes that ask: of this one's, those that multiprocessing began, not its resource tracker."""
    from multiprocessing import active_children

    return [child.pid for child in active_children() if child.pid is not None]


FAULTY_AGENT = """
import os
import time
from dataclasses import replace

from kinodex.agent.errors import AllRejected
from kinodex.agent.variants.baselines.uniform import UNIFORM

class Odd(AllRejected):
    def __init__(self, one, other):
        super().__init__("odd")

async def run(session, parameters):
    if "number 1?" in session.question.text:
        os._exit(9)
    if "number 2?" in session.question.text:
        time.sleep(60)
    if "number 3?" in session.question.text:
        raise Odd(1, 2)
    return await UNIFORM.run(session, parameters)

MINE = replace(UNIFORM, name="mine", run=run)
"""
FAULTY = Contender("mine", "faulty.py", {"frames": 3}, source=FAULTY_AGENT)


def test_a_question_that_ends_its_process_takes_no_other_with_it(
    place: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process asks them all at once, so that each fault ends the others' process, too."""
    monkeypatch.setattr("kinodex.jobs.eval.solvers.TRIES", 2)  # each process that is begun takes two seconds

    async def run() -> list[SolvedItem]:
        async with process_solver(setting_of(place, server), 1, grace_s=0.1, hang_s=3.0) as ask:
            return await together(ask, questions(place, 3), FAULTY)

    before = set(children())
    solved = asyncio.run(run())
    assert [each.result.option for each in solved] == [0, None, None]
    assert [each.result.error for each in solved] == [
        "",
        "the process that asked ended with status 9 (out of memory?)",
        "the agent did not give its process back for 3 s",
    ]
    assert set(children()) == before
