"""State of a search: segments divided at frames, times that are unseen, rewards beside a frame, and the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Earlier, Question, ShownFrame
from kinodex.agent.requests.answer import Recall
from kinodex.agent.requests.tree import Decide
from kinodex.agent.trace import Event, PriorEvidence, Ranked, Remembered
from kinodex.agent.tree import (
    Memory,
    Tree,
    border_rewards,
    shown_frames,
)
from kinodex.agent.variants.eea import EEAParameters
from kinodex.agent.variants.vca import VCAParameters
from tests.support.libraries.agent_library import (
    ScriptedModel,
    environment_of,
    explorer,
    film,
    make_library,
)


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


def test_a_frame_has_the_larger_reward_of_the_parts_beside_it(environment: Environment) -> None:
    tree, frames = grown(environment, 5.0, 12.0)
    parts = list(tree.candidates.values())
    parts[0].reward, parts[1].reward = 20, 70
    assert border_rewards(frames, parts) == [70, 70]
    parts[1].reward = None
    assert border_rewards(frames, parts) == [20, None]


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
    answer = asyncio.run(
        ask(
            QUESTION,
            environment,
            model,
            agent=agent,
            parameters=parameters,
            budget=Budget(rounds=2),
            on_event=events.append,
            seen=seen,
        )
    )
    titles = {video.video_id: video.title for video in environment.videos}
    return answer, events, model, titles


def ranking(events, titles):
    (ranked,) = [event for event in events if isinstance(event, Ranked)]
    return [titles[segment.video_id] for segment in ranked.segments], ranked.similarities


def test_videos_are_ranked_by_their_best_anchors(library):
    for agent in ["eea", "vca"]:
        _, events, _, titles = run(library, agent)
        order, similarities = ranking(events, titles)
        assert set(order[:2]) == {"moment", "all about it"}, agent
        assert similarities[1] > 0.5 > similarities[2], agent
        assert list(similarities) == sorted(similarities, reverse=True), agent


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
    shown = [frame.frame_no for frame in model.asked(Decide)[0].frames if frame.video_id == none.video_id]
    assert shown[:2] == [frame.frame_no for frame in before]
    assert answer.status == "budget_exhausted"
