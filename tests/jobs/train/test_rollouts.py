"""Rollouts of a master in training: the agent runs, and the tokens of the master are told from those of messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.local.model import load_local_model
from kinodex.agent.local.tokens import first_tokens
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.question import Question
from kinodex.agent.variants.settings import with_settings
from kinodex.agent.videos.environment import Environment
from kinodex.index.spaces.load import load_text_tower
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import parse_contenders
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.jobs.models import ModelChoice, chosen_models
from kinodex.jobs.train.master import benchmark_questions, film_environments
from kinodex.jobs.train.memory import static_memory
from kinodex.jobs.train.rewards import ALPHA
from kinodex.jobs.train.sampling import RolloutContext, sample_rollouts
from kinodex.jobs.train.settings import MasterSettings
from kinodex.jobs.train.trainer import expected_warnings, trainer_config
from tests.support.command import Kinodex
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.agent_library import ScriptedModel
from tests.support.libraries.text_files import written
from tests.support.libraries.text_library import text_library
from tests.support.models.training_model import ACTIONS, tiny_master, words_tokenizer
from tests.world.drawn_space import DRAWN


@pytest.mark.slow
def test_only_what_the_master_said_is_its_own(home):
    model = load_local_model(str(home / "model"), max_new_tokens=4)
    known = read_known(home / "questions.jsonl")
    environments = film_environments(str(home / "library"), {each.film for each in known})

    async def sampled():
        async with chosen_models(ModelChoice()) as frozen:
            context = RolloutContext(known, environments, frozen)
            return await sample_rollouts([0, 1] * 3, context, MasterSettings.read(), model.generator)

    runs = asyncio.run(sampled())
    assert len(runs) == 6
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


@pytest.mark.slow
def test_long_transcripts_are_shortened_to_the_context_of_the_master(home, tmp_path):
    model = load_local_model(str(home / "model"), max_new_tokens=4)
    words = "word " * 60
    lines = {f"s05e06_seg01_clip_{number:02d}": [(0.0, 60.0, words)] for number in range(40)}
    library = text_library(tmp_path / "episode", {}, lines, space=DRAWN)
    episode = Environment.of(library, library.videos(), load_text_tower(DRAWN).embed_text)
    known = [KnownQuestion("episode", "said", Question("Who opens the door?", ("he", "she")), 0, 0.0, 1.0)]

    async def sampled():
        async with chosen_models(ModelChoice()) as frozen:
            context = RolloutContext(known, {"episode": episode}, frozen)
            return await sample_rollouts([0] * 2, context, MasterSettings.read(), model.generator)

    for run in asyncio.run(sampled()):
        assert 2_000 < len(run.prompt) <= 4096 * 3 // 4
        assert len(run.prompt) + len(run.completion) <= 4096
        assert sum(run.own)


def test_the_trained_agent_is_the_evaluated_one(kinodex: Kinodex, tmp_path: Path) -> None:
    """An episode of LongTVQA as it is imported; the same parameters and rules, and so the same prompt and turns."""
    said = {f"s05e06_seg02_clip_{number}": f"Amy : I hold line {number} <eos>" for number in (14, 15, 16)}
    place, source = str(tmp_path / "library"), written(tmp_path / "clips.json", said)
    assert kinodex("import", "speech", source, place, "--space", DRAWN, "--clip-seconds", "60").code == 0
    rows = [kit.longtvqa_row(), kit.longtvqa_row(8, episode_name="s05e07", occur_clip="s05e07_seg01_clip_00")]
    known = benchmark_questions(place, "longtvqa", kit.published(tmp_path, "longtvqa", *rows))
    assert [(each.film, each.answer) for each in known] == [("s05e06", 4)], "the library lacks the other episode"
    environments = film_environments(place, {each.film for each in known})
    changes = tmp_path / "changes.toml"
    changes.write_text("entropy = 0.01\n[agent]\nwindow = 2\nrounds = 3\n")
    settings = MasterSettings.read(changes, turn_tokens=4)
    tiny_master(tmp_path / "model", words_tokenizer([known[0].question.text], words=6))
    model = load_local_model(str(tmp_path / "model"), max_new_tokens=4)

    async def sampled():
        async with chosen_models(ModelChoice()) as frozen:
            return await sample_rollouts([0], RolloutContext(known, environments, frozen), settings, model.generator)

    (run,) = asyncio.run(sampled())
    (contender,) = parse_contenders(["longvideoagent:window=2,rounds=3"], controls=False)
    evaluated = with_settings(contender.find_variant().parameters(180.0), contender.settings)
    assert settings.parameters == evaluated and settings.rules.force_choice
    master = ScriptedModel(lambda request: "<answer>E</answer>")
    asked: dict[str, Any] = {"agent": "longvideoagent", "parameters": evaluated}
    for options, same in ((settings.rules, True), (USUAL, True), (AnswerRules(force_choice=False), False)):
        asyncio.run(ask(known[0].question, environments["s05e06"], master, **asked, rules=options))
        assert (render(master.requests[-1]) == run.rollout.messages[0].text) == same
    assert "insufficient" not in run.rollout.messages[0].text
    assert len([each for each in run.rollout.messages if each.speaker == "assistant"]) <= 3
    with expected_warnings():
        assert trainer_config(tmp_path, settings).entropy_coef == 0.01


def test_settings_are_the_papers_then_a_files_then_options(tmp_path: Path) -> None:
    settings = MasterSettings.read()
    assert (settings.learning_rate, settings.steps, settings.kl, settings.alpha) == (5e-6, 2000, 1e-3, ALPHA)
    assert (settings.questions, settings.rollouts, settings.temperature) == (4, 4, 1.0)
    file = tmp_path / "changes.toml"
    file.write_text("steps = 7\nrollouts = 2\n")
    settings = MasterSettings.read(file, steps=3, seed=None)
    assert (settings.steps, settings.rollouts, settings.questions) == (3, 2, 4)
    for text, problem in BAD_FILES.items():
        file.write_text(text)
        with pytest.raises(UsageError, match=problem) as caught:
            MasterSettings.read(file)
        assert str(file) in str(caught.value)
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml"):
        MasterSettings.read(tmp_path / "none.toml")


BAD_FILES = {
    "learning_rat = 1.0": r"there is no setting learning_rat; did you mean learning_rate\?",
    "xyz = 1": "there is no setting xyz; the settings are learning_rate, steps",
    "rollouts = 1": "got rollouts = 1; Input should be greater than or equal to 2",
    "steps =": "give a TOML file like grpo.toml",
}


def test_the_memory_of_models_as_the_paper_trains_them() -> None:
    for whole, trained, gigabytes in (
        (3_085_938_688, 3_085_938_688, 61.7),
        (3_085_938_688, 29_933_568, 6.6),
        (7_615_616_512, 7_615_616_512, 152.3),
    ):
        memory = static_memory(whole, trained, reference=True, bf16=True)
        assert memory.total / 1e9 == pytest.approx(gigabytes, rel=0.01), (whole, trained)
    with_it, without = (static_memory(1000, 1000, reference=each, bf16=True) for each in (True, False))
    assert with_it.total - without.total == with_it.reference == 4000
