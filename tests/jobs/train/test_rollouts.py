"""Rollouts of a master in training: the agent runs, and the tokens of the master are told from those of messages."""

from __future__ import annotations

import asyncio

from agent.models.chat_template import first_tokens
from agent.models.local import load_local_model
from jobs.model_choice import ModelChoice, chosen_models
from jobs.synthetic.known_answers import read_known
from jobs.train.grpo import film_environments
from jobs.train.rollouts import RolloutContext, sample_rollouts
from jobs.train.settings import MasterSettings
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
