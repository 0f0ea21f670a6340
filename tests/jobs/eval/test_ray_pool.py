"""`kinodex eval run --ray`: the same records as in one process, with workers that die on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.errors import ModelUnknown
from kinodex.agent.limits.budget import Budget
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import read_results
from kinodex.jobs.eval.plan import RunRequest, make_plan
from kinodex.jobs.eval.results import ItemResult, RunContext
from kinodex.jobs.eval.run import RunOptions, run
from kinodex.jobs.eval.solve import open_solver
from kinodex.jobs.models import ModelChoice
from tests.support.runs.eval_runs import OWN_AGENT, caption_library, write_questions
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.ray_node import RayCluster, kill, named
from tests.world.benchmark import SKETCHES

pytest.importorskip("ray")

pytestmark = pytest.mark.ray

ANSWER = {"action": "answer", "option": "A", "answer": None, "evidence": [1]}
FILMS = ("harbour",)
READERS = (Contender("mine", "elsewhere.py", {"frames": 3}, source=OWN_AGENT), Contender("random", "random"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eval")
    caption_library(folder / "library", FILMS)
    write_questions(folder, FILMS)
    return folder


@pytest.fixture(scope="module")
def head(ray_cluster: RayCluster) -> Iterator[int]:
    """The first process of the cluster that this one is connected to."""
    from kinodex.jobs.ray_cluster import connected

    with connected(ray_cluster.address):
        yield ray_cluster.head


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda body: ANSWER) as server:
        yield server


def evaluate(place: Path, out: Path, choice: ModelChoice, *, ray: bool) -> dict[tuple[str, str], ItemResult]:
    """The records of a run by contender and question, without times."""
    from kinodex.jobs.eval.solvers import ray_solver

    setting = RunContext(str(place / "library"), choice, Budget())
    plan, items = make_plan(RunRequest(SKETCHES, place / "questions.jsonl", READERS), setting)
    who_asks = ray_solver(setting, 1, None) if ray else open_solver(setting)
    run(plan, items, who_asks, out, RunOptions(items=3))
    timeless = [
        replace(each, ledger=replace(each.ledger, seconds=0.0, model_seconds=0.0)) for each in read_results(out)
    ]
    return {(each.contender, each.item_id): each for each in timeless}


def deadly(text: str, head: int) -> Callable[[dict], dict]:
    """A reply that kills all workers when something is first asked."""
    deaths: list[int] = []

    def reply(body: dict) -> dict:
        if text in json.dumps(body) and not deaths:
            deaths.extend(named(head, "ray::SolveWorker"))
            for pid in deaths:
                kill(pid)
        return ANSWER

    return reply


def test_workers_that_die_are_replaced_and_the_records_are_those_of_one_process(place, head, server, tmp_path):
    choice = ModelChoice("tester", server.base_url, cache=False)
    here = evaluate(place, tmp_path / "here", choice, ray=False)
    server.reply = deadly("number 1?", head)
    assert evaluate(place, tmp_path / "ray", choice, ray=True) == here
    assert len(here) == 8


def test_what_ends_a_run_comes_through(place, head, server, tmp_path):
    choice = ModelChoice("other", server.base_url, cache=False)
    with pytest.raises(ModelUnknown, match="has no model 'other'"):
        evaluate(place, tmp_path / "run", choice, ray=True)
