"""State of a search: segments divided at frames, times that are unseen, rewards beside a frame, and the memory."""

from __future__ import annotations

import asyncio
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from kinodex.agent.ask import ask
from kinodex.agent.limits.account import Account
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Earlier, Question
from kinodex.agent.requests.answer import Recall
from kinodex.agent.requests.tree import Decide
from kinodex.agent.search.coverage import cover, spread
from kinodex.agent.search.memory import Memory
from kinodex.agent.search.tree import Tree, border_rewards, unseen_times
from kinodex.agent.search.video_choice import new_queries
from kinodex.agent.traces.events import Event, Ranked, Remembered
from kinodex.agent.traces.prior_evidence import PriorEvidence
from kinodex.agent.variants.eea.agent import EEAParameters
from kinodex.agent.variants.vca.parameters import VCAParameters
from kinodex.agent.videos.environment import Environment
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library


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
    at_start, _ = grown(environment, 0.0, 10.0)
    assert [(each.segment.start_s, each.segment.end_s) for each in at_start.candidates.values()] == [(0, 10), (10, 20)]


def test_a_frame_has_the_larger_reward_of_the_parts_beside_it(environment: Environment) -> None:
    tree, frames = grown(environment, 5.0, 12.0)
    parts = list(tree.candidates.values())
    parts[0].reward, parts[1].reward = 20, 70
    assert border_rewards(frames, parts) == [70, 70]
    parts[1].reward = None
    assert border_rewards(frames, parts) == [20, None]


def frame(frame_no: int) -> ShownFrame:
    return ShownFrame("v", frame_no, float(frame_no), 8, 8, b"")


@pytest.mark.parametrize(
    ("why", "capacity", "held", "room", "left"),
    [
        ("there is room", 3, {}, 3, []),
        ("without a reward", 3, {5: 60, 1: None, 3: 10}, 1, [1]),
        ("the lowest, the others in the order of arrival", 3, {5: 60, 3: 10, 9: 90}, 1, [3]),
        ("of equal ones the latest", 2, {5: 50, 1: 50}, 1, [1]),
    ],
)
def test_what_leaves_the_memory(
    why: str, capacity: int, held: dict[int, float | None], room: int, left: list[int]
) -> None:
    memory = Memory(capacity)
    memory.add([frame(number) for number in held], list(held.values()))
    assert [each.frame_no for each in memory.make_room(room)] == left, why
    memory.add([frame(number) for number in range(20, 20 + room)], [None] * room)
    stayed = [number for number in held if number not in left]
    assert [each.frame_no for each in memory.frames] == [*stayed, *range(20, 20 + room)], why


def test_a_frame_with_a_low_reward_does_not_stay_but_one_that_is_cited_does() -> None:
    memory = Memory(2, cited={("v", 7)})
    memory.add([frame(7), frame(5)], [10, 60])
    assert [each.frame_no for each in memory.add([frame(9)], [20])] == [9], "it may be among the new ones"
    assert [each.frame_no for each in memory.in_time_order] == [5, 7]


# Choice of what to look at: videos by what matches, and coverage, compared with every choice there is.


QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
KITE = "red kite desert"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    films = {
        "none": film(2, 300),
        "moment": film(3, 300, {200: (KITE, 10)}),
        "all about it": film(4, 300, {0: (KITE, 260)}),
        "other": film(5, 300),
    }
    return make_library(tmp_path_factory.mktemp("roots"), films)


def run(library, agent, script=explorer, parameters=None, seen=None):
    environment, model = environment_of(library), ScriptedModel(script)
    events: list[Event] = []
    given = {"agent": agent, "parameters": parameters, "budget": Budget(rounds=2), "seen": seen}
    answer = asyncio.run(ask(QUESTION, environment, model, on_event=events.append, **given))
    titles = {video.video_id: video.title for video in environment.videos}
    return answer, events, model, titles


def ranking(events, titles):
    (ranked,) = [event for event in events if isinstance(event, Ranked)]
    return [titles[segment.video_id] for segment in ranked.segments], ranked.similarities


def test_of_many_videos_those_with_the_best_anchors_are_searched_the_best_first(library):
    for agent, parameters in [("eea", EEAParameters(videos=3)), ("vca", VCAParameters(videos=3))]:
        _, events, model, titles = run(library, agent, parameters=parameters)
        order, similarities = ranking(events, titles)
        assert (len(order), set(order[:2])) == (3, {"moment", "all about it"}), agent
        assert similarities[1] > 0.5 > similarities[2], agent
        assert list(similarities) == sorted(similarities, reverse=True), agent
        assert {titles[video.video_id] for video in model.asked(Decide)[0].videos} == set(order), agent


@pytest.mark.parametrize(("agent", "parameters"), [("eea", EEAParameters(videos=1)), ("vca", VCAParameters(videos=1))])
def test_what_a_conversation_has_seen_stays_and_begins_the_memory(library, agent, parameters):
    environment = environment_of(library)
    none = next(video for video in environment.videos if video.title == "none")
    before = environment.frames(none.video_id, [30.0, 90.0])

    def forgetful(request):
        return {"action": "insufficient_evidence"} if isinstance(request, Recall) else explorer(request)

    seen = PriorEvidence((Earlier("Who was there?", "nobody"),), before, ())
    answer, events, model, titles = run(library, agent, forgetful, parameters, seen)
    assert "none" in ranking(events, titles)[0]
    remembered = next(event for event in events if isinstance(event, Remembered)).added
    assert [(frame.frame_no, frame.label) for frame in remembered] == [(before[0].frame_no, 1), (before[1].frame_no, 2)]
    shown = {frame.frame_no for frame in model.asked(Decide)[0].frames if frame.video_id == none.video_id}
    assert {frame.frame_no for frame in before} <= shown
    assert answer.status == "budget_exhausted"


def test_sampled_and_shown_frames_are_not_unseen(environment: Environment) -> None:
    tree, _ = grown(environment, 5.0, 12.0)
    account = Account(Budget(), 20)
    account.count_shown(environment.frames(environment.videos[0].video_id, [6.0]))
    assert unseen_times(tree, environment, account, tree.candidates[2].segment).tolist() == [7, 8, 9, 10, 11]
    account.count_shown(environment.frames(environment.videos[0].video_id, range(20)))
    seen = [unseen_times(tree, environment, account, each.segment) for each in tree.candidates.values()]
    assert not any(map(len, seen))


def test_new_queries_are_those_not_known():
    assert new_queries([" red kite ", "red kite", "boat", "sea"], ["Boat"]) == ["red kite", "sea"]
    assert new_queries([str(number) for number in range(9)], []) == ["0", "1", "2", "3", "4"]


def largest_gap(points: np.ndarray, chosen: np.ndarray) -> float:
    """From a point to its nearest chosen time."""
    return float(np.abs(points[:, None] - chosen[None]).min(axis=1, initial=np.inf).max())


def best_possible(points: np.ndarray, available: np.ndarray, fixed: np.ndarray, count: int) -> float:
    choices = combinations(available.tolist(), min(count, len(available)))
    return min(largest_gap(points, np.asarray(sorted([*fixed, *choice]))) for choice in choices)


def test_no_choice_covers_better():
    for seed in range(40):
        random = np.random.default_rng(seed)
        points = np.unique(random.integers(0, 60, size=random.integers(3, 14))).astype(float)
        fixed = np.sort(random.choice(points, size=random.integers(0, min(4, len(points))), replace=False))
        available, count = np.setdiff1d(points, fixed), int(random.integers(1, 4))
        if not len(available):
            continue
        chosen = cover(points, available, fixed, count)
        assert len(chosen) == min(count, len(available))
        assert set(chosen) <= set(available)
        reached = largest_gap(points, np.union1d(fixed, chosen))
        assert reached == pytest.approx(best_possible(points, available, fixed, count), abs=1e-9), seed


def test_fewer_stored_frames_than_wanted_are_all_taken():
    stored = np.asarray([3.0, 9.0])
    assert cover(stored, stored, stored[:0], 6).tolist() == [3.0, 9.0]
    assert spread(0.0, 10.0, stored, 6).tolist() == [3.0, 9.0]
