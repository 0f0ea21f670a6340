"""Rollouts of a master in training: the agent runs, and the tokens of the master are told from those of messages."""

from __future__ import annotations

import asyncio

from kinodex.agent.environment import Environment
from kinodex.agent.models.local import first_tokens, load_local_model
from kinodex.agent.protocol import Question
from kinodex.index.spaces.space import load_space
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.train.rollouts import (
    MasterSettings,
    RolloutContext,
    sample_rollouts,
)
from kinodex.jobs.train.trainer import film_environments
from tests.support.libraries.text_library import text_library
from tests.support.models.training_model import ACTIONS


def test_only_what_the_master_said_is_its_own(home):
    model = load_local_model(str(home / "model"), max_new_tokens=4)
    known = read_known(home / "questions.jsonl")
    environments = film_environments(str(home / "library"), {each.film for each in known})

    async def sampled():
        async with chosen_models(ModelChoice()) as frozen:
            context = RolloutContext(known, environments, frozen)
            return await sample_rollouts([0, 1] * 6, context, MasterSettings.read(), model.generator)

    runs = asyncio.run(sampled())
    assert len(runs) == 12
    for run in runs:
        read = model.generator.tokenizer.decode
        said = [token for token, own in zip(run.completion, run.own, strict=True) if own]
        turns = [turn.text for turn in run.rollout.messages if turn.speaker == "assistant"]
        assert read(said, skip_special_tokens=True).split() == " ".join(turns).replace("(nothing)", "").split()
        assert run.own[0] == 1 and run.own[-1] == 1
        assert run.prompt == first_tokens(model.generator.tokenizer, run.rollout.messages[0].text)
    assert any(0 in run.own for run in runs)
    valid = [turn for run in runs for turn in run.rollout.messages if turn.text in ACTIONS]
    assert valid


def test_long_transcripts_are_shortened_to_the_context_of_the_master(home, tmp_path):
    model = load_local_model(str(home / "model"), max_new_tokens=4)
    words = "word " * 60
    lines = {f"s05e06_seg01_clip_{number:02d}": [(0.0, 60.0, words)] for number in range(40)}
    library = text_library(tmp_path / "episode", {}, lines, space="builtin")
    episode = Environment.of(library, library.videos(), load_space("builtin", towers="text").embed_text)
    known = [KnownQuestion("episode", "said", Question("Who opens the door?", ("he", "she")), 0, 0.0, 1.0)]

    async def sampled():
        async with chosen_models(ModelChoice()) as frozen:
            context = RolloutContext(known, {"episode": episode}, frozen)
            return await sample_rollouts([0] * 4, context, MasterSettings.read(), model.generator)

    for run in asyncio.run(sampled()):
        assert 2_000 < len(run.prompt) <= 4096 * 3 // 4
        assert len(run.prompt) + len(run.completion) <= 4096
        assert sum(run.own)
