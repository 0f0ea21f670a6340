"""State of a search: segments divided at frames, times that are unseen, rewards beside a frame, and the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.budget import Account, Budget
from agent.core.protocol import ShownFrame
from agent.environment import Environment
from agent.tree_search.search_state import Memory, Tree, affordable, border_rewards, shown_candidates, unseen_times
from tests.support.libraries.agent_library import environment_of, film, make_library


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder: Path = tmp_path_factory.mktemp("tree")
    return environment_of(make_library(folder, {"film": film(1, 20)}))


def grown(environment: Environment, *times_s: float, keep: bool = False) -> tuple[Tree, tuple[ShownFrame, ...]]:
    video = environment.videos[0]
    tree = Tree()
    tree.add(video.video_id, video.start_s, video.end_s)
    frames = environment.frames(video.video_id, times_s)
    tree.divide(0, frames, keep=keep)
    return tree, frames


def test_parts_lie_between_the_frames_and_numbers_are_never_used_twice(environment: Environment) -> None:
    tree, _ = grown(environment, 5.0, 12.0)
    spans = {number: (each.segment.start_s, each.segment.end_s) for number, each in tree.candidates.items()}
    assert spans == {1: (0.0, 5.0), 2: (5.0, 12.0), 3: (12.0, 20.0)}
    kept, _ = grown(environment, 5.0, keep=True)
    assert {number: each.divided for number, each in kept.candidates.items()} == {0: True, 1: False, 2: False}


def test_a_frame_at_the_start_makes_no_empty_part(environment: Environment) -> None:
    tree, _ = grown(environment, 0.0, 10.0)
    assert [(each.segment.start_s, each.segment.end_s) for each in tree.candidates.values()] == [(0, 10), (10, 20)]


def test_sampled_and_shown_frames_are_not_unseen(environment: Environment) -> None:
    tree, _ = grown(environment, 5.0, 12.0)
    account = Account(Budget(), 20)
    account.count_shown(environment.frames(environment.videos[0].video_id, [6.0]))
    assert unseen_times(tree, environment, account, tree.candidates[2].segment).tolist() == [7, 8, 9, 10, 11]
    account.count_shown(environment.frames(environment.videos[0].video_id, range(20)))
    assert not any(each.explorable for each in shown_candidates(tree, environment, account, lambda each: each.fused))


def test_a_frame_has_the_larger_reward_of_the_parts_beside_it(environment: Environment) -> None:
    tree, frames = grown(environment, 5.0, 12.0)
    parts = list(tree.candidates.values())
    parts[0].reward, parts[1].reward = 20, 70
    assert border_rewards(frames, parts) == [70, 70]
    parts[1].reward = None
    assert border_rewards(frames, parts) == [20, None]


def test_the_budget_of_frames_limits_a_round() -> None:
    account = Account(Budget(frames=4), 20)
    account.count_shown([ShownFrame("film", number, 0.0, 8, 8, b"") for number in range(3)])
    assert affordable(account, 6) == 1
    assert affordable(Account(Budget(), 20), 6) == 6


def frame(frame_no: int) -> ShownFrame:
    return ShownFrame("v", frame_no, float(frame_no), 8, 8, b"")


def test_memory_drops_the_lowest_reward_then_the_oldest():
    memory = Memory(3)
    assert memory.add([frame(5), frame(1), frame(3)], [50, 10, 10]) == []
    assert memory.add([frame(9)], [60]) == [frame(1)]
    assert memory.add([frame(8)], [None]) == [frame(8)]
    assert [held.frame_no for held in memory.frames] == [3, 5, 9]
