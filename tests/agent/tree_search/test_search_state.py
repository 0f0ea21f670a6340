"""State of a search: segments divided at frames, times that are unseen, rewards beside a frame, and the memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kinodex.agent.environment import Environment
from kinodex.agent.limits import Account, Budget
from kinodex.agent.protocol import ScoredSegment, Segment, ShownFrame
from kinodex.agent.tree import (
    Memory,
    Tree,
    affordable,
    border_rewards,
    live_history,
    shown_candidates,
    shown_frames,
    unseen_times,
)
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


def frame_nos(frames: Sequence[ShownFrame]) -> list[int]:
    return [held.frame_no for held in frames]


def test_the_lowest_rewards_leave_the_memory_and_the_others_stay_in_the_order_of_arrival() -> None:
    memory = Memory(3)
    assert memory.make_room(3) == []
    memory.add([frame(5), frame(1), frame(3)], [60, None, 10])
    assert frame_nos(memory.make_room(1)) == [1]
    memory.add([frame(9)], [90])
    assert frame_nos(memory.frames) == [5, 3, 9]
    assert frame_nos(memory.make_room(1)) == [3]


def test_of_nearly_equal_rewards_the_latest_leaves_so_that_the_beginning_stays() -> None:
    memory = Memory(2)
    memory.add([frame(5), frame(1)], [45, 50])
    assert frame_nos(memory.make_room(1)) == [1]


def test_new_frames_never_leave_before_they_were_seen() -> None:
    memory = Memory(2)
    memory.add([frame(1), frame(2)], [100, 100])
    assert frame_nos(memory.make_room(3)) == [1, 2]
    memory.add([frame(3), frame(4), frame(5)], [None, None, None])
    assert frame_nos(memory.frames) == [3, 4, 5]


def test_frames_leave_in_batches() -> None:
    memory, sizes = Memory(6, slack=6), []
    for number in range(0, 24, 3):
        memory.make_room(3)
        memory.add([frame(number + each) for each in range(3)], [float(number)] * 3)
        sizes.append(len(memory.frames))
    assert sizes == [3, 6, 9, 12, 4, 7, 10, 4]


def test_pictures_are_small_unless_they_are_to_be_large() -> None:
    frames = [frame(1), frame(2), frame(3)]
    details = {
        pictures: [each.detail for each in shown_frames(frames, 1, pictures)]
        for pictures in ("small", "new large", "large")
    }
    assert details == {
        "small": ["low", "low", "low"],
        "new large": ["low", "low", "auto"],
        "large": ["auto", "auto", "auto"],
    }


def test_the_history_is_that_of_segments_that_can_be_chosen_and_of_the_parent(environment: Environment) -> None:
    tree, _ = grown(environment, 5.0, 12.0)
    segments = [Segment(number, "v", 0.0, 1.0) for number in (0, 1, 2, 3, 7, 8)]
    kept = live_history([ScoredSegment(each, 50.0) for each in segments], tree, parent=7)
    assert [each.segment.number for each in kept] == [1, 2, 3, 7]
