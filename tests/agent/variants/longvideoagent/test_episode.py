"""The episode of a master: the same for the agent's loop and for training; malformed turns are used up."""

from __future__ import annotations

import asyncio

import pytest

from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question, Turn
from kinodex.agent.session import Session
from kinodex.agent.variants.longvideoagent import answer_now, begin_episode, next_action, take_step
from kinodex.agent.variants.longvideoagent_requests import ChooseAction
from tests.support.libraries.agent_library import ScriptedModel, environment_of
from tests.support.libraries.text_library import text_library
from tests.support.runs.longvideoagent_runs import ANSWER, LOCATE, LOOK, QUESTION, read, run, saying


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("I would look at it.", "exactly one action"),
        ("<visual_query>the kite", "no end"),
        ("<visual_query> </visual_query>", "the visual query is empty"),
        ("<answer>C</answer>", "names no option"),
        ("<think>hm", "the thinking has no end"),
    ],
)
def test_a_malformed_turn_is_used_up_and_the_master_told_why(spoken, said, why):
    async def rounds():
        session = Session(QUESTION, spoken, ScriptedModel(saying(LOCATE)), Budget(rounds=5), lambda event: None)
        episode = begin_episode(session, steps=5, clip_s=0.0)
        return await take_step(session, episode, read(next_action(episode), said))

    episode = asyncio.run(rounds())
    assert episode.turns[0] == Turn("assistant", said)
    assert why in episode.turns[1].text
    assert "Think again" in episode.turns[1].text
    assert (episode.current, episode.notes) == ((), ())


def test_training_steps_the_same_world(spoken):
    """A master that is no model of the session; its world is the loop's, to the letter."""
    _, looped, _ = run(spoken, saying(LOCATE, LOOK, ANSWER))

    async def rollout():
        session = Session(QUESTION, spoken, ScriptedModel(saying("unasked")), Budget(rounds=5), lambda event: None)
        episode = begin_episode(session, steps=5, clip_s=0.0)
        for said in (LOCATE, LOOK):
            episode = await take_step(session, episode, read(next_action(episode), said))
        return episode

    episode = asyncio.run(rollout())
    assert next_action(episode) == looped.asked(ChooseAction)[-1]
    assert [note.source for note in answer_now(episode).notes] == ["grounding", "vision"]


@pytest.fixture(scope="module")
def longtvqa(tmp_path_factory):
    """An episode as LongTVQA publishes it: a video for each of its 40 clips, with lines and no pictures."""
    lines = {
        f"s05e06_seg{number // 20:02d}_clip_{number % 20:02d}": [(0.0, 60.0, f"this is said in scene {number}")]
        for number in range(40)
    }
    return environment_of(text_library(tmp_path_factory.mktemp("longtvqa"), {}, lines))


def test_all_clips_of_an_episode_reach_the_master(longtvqa):
    _, model, _ = run(longtvqa, saying(ANSWER), clip_s=60.0)
    clips = model.asked(ChooseAction)[0].clips
    assert [clip.text for clip in clips] == [f"this is said in scene {number}" for number in range(40)]
    assert [clip.number for clip in clips] == list(range(1, 41))


def test_of_a_whole_library_the_best_matching_clips_are_read(longtvqa):
    question = Question("Who is in scene 7", ("he", "she"))
    _, model, _ = run(longtvqa, saying(ANSWER), question=question, clip_s=60.0, clips=10)
    texts = [clip.text for clip in model.asked(ChooseAction)[0].clips]
    assert len(texts) == 10
    assert "this is said in scene 7" in texts
