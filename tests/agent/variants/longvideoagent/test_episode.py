"""The episode of a master: the same for the agent's loop and for training; malformed turns are used up."""

from __future__ import annotations

import asyncio

import pytest

from agent.core.budget import Budget
from agent.core.protocol import Turn
from agent.session import Session
from agent.variants.longvideoagent.episode import answer_now, begin_episode, next_action, take_step
from agent.variants.longvideoagent.requests import ChooseAction
from tests.support.libraries.agent_library import ScriptedModel
from tests.support.runs.longvideoagent_runs import (
    ANSWER,
    LOCATE,
    LOOK,
    QUESTION,
    read,
    run,
    saying,
)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("I would look at it.", "exactly one action"),
        (f"{LOOK}<answer>B</answer>", "exactly one action"),
        ("<visual_query>the kite", "no end"),
        ("<visual_query> </visual_query>", "the visual query is empty"),
        ("<answer>C</answer>", "names no option"),
        ("<think>hm", "the thinking has no end"),
        (f"{LOOK}<think>or</think><answer>B</answer>", "it thinks after an action"),
    ],
)
def test_a_malformed_turn_is_used_up_and_the_master_told_why(spoken, said, why):
    async def rounds():
        session = Session(QUESTION, spoken, ScriptedModel(saying(LOCATE)), Budget(rounds=5), lambda event: None)
        episode = begin_episode(session, steps=5)
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
        episode = begin_episode(session, steps=5)
        for said in (LOCATE, LOOK):
            episode = await take_step(session, episode, read(next_action(episode), said))
        return episode

    episode = asyncio.run(rollout())
    assert next_action(episode) == looped.asked(ChooseAction)[-1]
    assert [note.source for note in answer_now(episode).notes] == ["grounding", "vision"]
