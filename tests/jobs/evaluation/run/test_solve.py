"""The record of a search: its rounds with their entropies, the segments explored, and the frames looked at."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.requests.tree import ScoreSegments
from kinodex.agent.trace import Decided, Event, Expanded, Scored
from kinodex.agent.variants.eea import reward_entropy
from kinodex.jobs.eval.solve import SearchRecorder, _one_thread
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

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


def test_rewards_that_never_come_have_no_entropy(environment):
    def silent(request):
        return "no idea" if isinstance(request, ScoreSegments) else explorer(request)

    watcher, _ = watched(environment, "eea", silent)
    assert [kept.intrinsic for kept in watcher.rounds] == [None] * 3
    assert all(kept.fused is not None for kept in watcher.rounds)


def test_what_was_looked_at_is_every_frame_shown_and_nothing_else(environment):
    watcher, _ = watched(environment, "uniform", frames=4)
    assert [(each.start_s, each.end_s) for each in watcher.visited] == [
        (120.0, 121.0),
        (240.0, 241.0),
        (360.0, 361.0),
        (480.0, 481.0),
    ]
    assert watched(environment, "random")[0].visited == ()


def test_threads_are_limited_while_any_solver_is_open_and_given_back_by_the_last() -> None:
    from threadpoolctl import threadpool_info

    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    torch = pytest.importorskip("torch")
    before, free = torch.get_num_threads(), threads()
    first, second = _one_thread.held(), _one_thread.held()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (torch.get_num_threads(), threads()) == (1, {1})
    second.__exit__(None, None, None)
    assert (torch.get_num_threads(), threads()) == (before, free)
