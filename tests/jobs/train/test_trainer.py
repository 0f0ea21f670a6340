"""Training by GRPO: settings, losses, memory, and a run that can go on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kinodex.agent.models.local import load_local_model
from kinodex.agent.trace import read_trace
from kinodex.agent.variants.longvideoagent_training import ALPHA
from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.vectors import Vectors
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import read_known
from kinodex.jobs.train.rollouts import MasterSettings, static_memory
from kinodex.jobs.train.trainer import (
    expected_warnings,
    film_environments,
    make_trainer,
    save_master,
    trainer_config,
    vllm_sample,
)
from tests.support.command import bad
from tests.support.models.tiny_models import TINY, write_model

pytestmark = pytest.mark.slow
QUESTIONS, ROLLOUTS = 2, 4
WELL_FORMED = (0, 1, 2, 3)
RIGHT = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0)
"""No rollout of the first question is right, half of the second's are."""


def settings(**changes) -> MasterSettings:
    small: dict[str, Any]
    small = {"questions": QUESTIONS, "rollouts": ROLLOUTS, "steps": 1, "learning_rate": 0.01, "turn_tokens": 4}
    return MasterSettings.read(**small, **changes)


def fixed_rollouts(alpha: float):
    """Rollouts of three tokens each; of every four, one has no well-formed turn and one has three."""

    def rollouts(prompts, trainer):
        count = len(prompts)
        answers = [RIGHT[int(prompt) * ROLLOUTS + at % ROLLOUTS] for at, prompt in enumerate(prompts)]
        return {
            "prompt_ids": [[3, 4]] * count,
            "completion_ids": [[5, 6, 7 + at % 3] for at in range(count)],
            "env_mask": [[1, 1, 1]] * count,
            "logprobs": None,
            "structure": [alpha * WELL_FORMED[at % ROLLOUTS] for at in range(count)],
            "answer": answers,
        }

    return rollouts


def trained(home, out, chosen: MasterSettings):
    rollouts = fixed_rollouts(chosen.alpha)
    with expected_warnings():
        trainer = make_trainer(str(home / "model"), out, chosen, range(QUESTIONS), rollouts, lambda line: None)
        trainer.train()
    return trainer


def tied_advantages(trainer) -> list[float]:
    """Of the question whose answers tie, sorted."""
    advantages = list(trainer._logs["advantages"])
    groups = [advantages[at : at + ROLLOUTS] for at in range(0, len(advantages), ROLLOUTS)]
    answers = [
        list(trainer._logs["rewards"]["answer"])[at : at + ROLLOUTS] for at in range(0, len(advantages), ROLLOUTS)
    ]
    [tied] = [group for group, right in zip(groups, answers, strict=True) if not any(right)]
    return sorted(tied)


def test_alpha_counts_where_answers_tie_unless_groups_are_scaled(home, tmp_path):
    def advantages(alpha: float, scale: str) -> list[float]:
        return tied_advantages(trained(home, tmp_path / scale, settings(alpha=alpha, scale_rewards=scale)))

    assert MasterSettings.read().scale_rewards == "none"
    assert advantages(0.02, "none") == pytest.approx([-0.03, -0.01, 0.01, 0.03])
    assert advantages(0.1, "none") == pytest.approx([-0.15, -0.05, 0.05, 0.15])
    small, large = advantages(0.02, "group"), advantages(0.1, "group")
    assert small == pytest.approx(large, rel=0.01)  # alpha has no effect
    assert large[-1] > 1


def bytes_of(tensors) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


@pytest.mark.parametrize("rank", [0, 2])
def test_the_memory_is_that_of_the_tensors(home, tmp_path, rank):
    trainer = trained(home, tmp_path, settings(lora_rank=rank))
    parameters = list(trainer.model.parameters())
    trained_ones = [each for each in parameters if each.requires_grad]
    expected = static_memory(
        sum(each.numel() for each in parameters),
        sum(each.numel() for each in trained_ones),
        reference=True,
        bf16=trainer.args.bf16,
    )
    assert expected.weights == bytes_of(parameters)
    moments = [each for state in trainer.optimizer.state.values() for name, each in state.items() if name != "step"]
    assert expected.optimiser == bytes_of(moments)
    reference = [] if trainer.ref_model is None else list(trainer.ref_model.parameters())
    assert expected.reference == bytes_of(reference)
    assert bool(rank) == (len(trained_ones) < len(parameters))


def test_adapters_alone_are_trained_and_merged_into_the_master(home, tmp_path):
    from safetensors.torch import load_file

    trainer = trained(home, tmp_path / "out", settings(lora_rank=2, save_every=1))
    assert all("lora" in name for name, each in trainer.model.named_parameters() if each.requires_grad)
    assert (tmp_path / "out" / "checkpoint-1" / "adapter_model.safetensors").is_file()
    save_master(trainer, tmp_path / "master")
    before = load_file(home / "model" / "model.safetensors")
    after = load_file(tmp_path / "master" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed and all("proj" in name for name in changed)
    for folder in (tmp_path / "master", tmp_path / "out" / "checkpoint-1"):
        assert load_local_model(str(folder), max_new_tokens=2).generator.context_tokens == 4096


class Engine:
    """The part of TRL's vLLM generation that is called: tokens in, tokens with their probabilities out."""

    mode = "server"

    def generate(self, prompts, images, num_generations):
        return prompts, [(*prompt[-1:], 9) for prompt in prompts], None, None


def test_another_engine_samples_tokens():
    trainer = SimpleNamespace(vllm_generation=Engine(), accelerator=SimpleNamespace(num_processes=1))
    assert vllm_sample(trainer)([[1, 2], [3]], 1.0, ()) == [[2, 9], [3, 9]]
    trainer.accelerator.num_processes = 2
    with pytest.raises(UsageError, match="serves one training process"):
        vllm_sample(trainer)


def test_an_engine_that_is_not_installed_is_named(kinodex, home, tmp_path):
    with pytest.raises(UsageError, match="pip install vllm"):
        trainer_config(tmp_path, settings(vllm="colocate"))
    ask = ["train", "master", home / "library", "--questions", home / "questions.jsonl", "--out", tmp_path / "out"]
    bad(kinodex, *ask, "--model", home / "model", "--vllm", "colocate", code=2, says="pip install vllm")
    bad(kinodex, *ask, "--model", home / "model", "--scale-rewards", "all", code=2, says="scale_rewards = 'all'")


STEPS = 2
TURNS, TURN_TOKENS = 5, 4
CHANGES = f"learning_rate = 0.01\nquestions = {QUESTIONS}\nrollouts = {ROLLOUTS}\nturn_tokens = {TURN_TOKENS}\n"


def weights(folder: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def train(kinodex, home, steps):
    (home / "changes.toml").write_text(CHANGES)
    return kinodex(
        "train", "master", home / "library", "--questions", home / "questions.jsonl", "--model", home / "model",
        "--out", home / "out", "--config", home / "changes.toml", "--steps", steps,
    )  # fmt: skip


def test_a_master_is_trained_and_plays(kinodex, home, tmp_path):
    ran = train(kinodex, home, STEPS)
    assert ran.code == 0, ran.err
    assert ran.out.strip() == str(home / "out" / "master")
    assert f"step {STEPS} of {STEPS}: reward " in ran.err

    rollouts = [json.loads(line) for line in (home / "out" / "rollouts.jsonl").read_text().splitlines()]
    assert len(rollouts) == STEPS * QUESTIONS * ROLLOUTS
    for rollout in rollouts:
        turns = [message for message in rollout["messages"] if message["role"] == "assistant"]
        assert len(turns) == len(rollout["rewards"]) <= TURNS
        assert rollout["total"] == pytest.approx(sum(rollout["rewards"]))
        assert rollout["total"] == pytest.approx(ALPHA * sum(rollout["structure"]) + rollout["answer"])
    assert len({rollout["total"] for rollout in rollouts}) > 1
    told = " ".join(each["content"] for rollout in rollouts for each in rollout["messages"][1:])
    assert "Located:\n<clip_" in told  # the library was really searched

    logged = json.loads((home / "out" / f"checkpoint-{STEPS}" / "trainer_state.json").read_text())["log_history"]
    assert len(logged) == STEPS
    # what the trainer learns from: the master's tokens, not the hundreds that it was told
    assert all(0 < step["completions/max_length"] <= TURNS * TURN_TOKENS for step in logged)

    before, after = weights(home / "model"), weights(home / "out" / "master")
    assert any(not before[name].equal(after[name]) for name in before)
    assert (home / "out" / f"checkpoint-{STEPS}" / "model.safetensors").is_file()

    known = read_known(home / "questions.jsonl")[0]
    trace = tmp_path / "run.jsonl"
    options = [text for option in known.question.options for text in ("--option", option)]
    played = kinodex(
        "ask", home / "library", known.question.text, *options, "--agent", "longvideoagent",
        "--model", f"local:{home / 'out' / 'master'}", "--trace", trace, "--json",
    )  # fmt: skip
    assert played.code == 0, played.err
    assert read_trace(trace)[0]["models"]["policy"] == f"local:{home / 'out' / 'master'}"
    exported = kinodex("rollouts", trace, "--questions", home / "questions.jsonl")
    right = json.loads(played.out)["option"] == known.answer
    assert json.loads(exported.out)["answer"] == float(right)


def test_training_goes_on_from_a_checkpoint(kinodex, home):
    if not (home / "out").exists():
        train(kinodex, home, STEPS)
    ran = train(kinodex, home, STEPS + 1)
    assert ran.code == 0, ran.err
    assert [line.split(":")[0] for line in ran.err.splitlines() if line.startswith("step ")] == ["step 3 of 3"]


def test_what_cannot_be_trained_is_refused(kinodex, home, tmp_path):
    wrong = tmp_path / "wrong.toml"
    ask = ["train", "master", home / "library", "--questions", home / "questions.jsonl", "--out", tmp_path / "out"]
    wrong.write_text("learning_rat = 1.0")
    bad(kinodex, *ask, "--model", "x", "--config", wrong, code=2, says="did you mean learning_rate?")
    bad(kinodex, *ask, "--model", tmp_path / "none", code=5, says="holds no config.json")
    other = tmp_path / "questions.jsonl"
    other.write_text((home / "questions.jsonl").read_text().replace("film-01.mp4", "film-09.mp4"))
    ask[4] = other
    bad(kinodex, *ask, "--model", home / "model", code=2, says="holds no film film-09.mp4")
    ask[4] = home / "questions.jsonl"
    bad(kinodex, *ask, "--model", home / "model", "--space", "nowhere", code=2, says="builtin")


def test_films_are_searched_in_the_space_that_is_named(home, tmp_path):
    shutil.copytree(home / "library", tmp_path / "library")
    library = Library.open(str(tmp_path / "library"))
    add(library, Vectors(write_model(tmp_path / "other", TINY)))
    own, other = library.spaces()
    for wanted, space in ((None, own), (other.name, other), (other.digest, other)):
        (film,) = film_environments(str(tmp_path / "library"), ["film-01.mp4"], wanted).values()
        assert film.space == str(space)
        assert film.vectors(film.videos[0].video_id).vectors.shape[1] == space.dim


def test_a_film_is_the_one_of_its_name_and_never_one_of_several(home, tmp_path):
    shutil.copytree(home / "library", tmp_path / "library")
    library = Library.open(str(tmp_path / "library"))
    film = library.video("film-01")
    twin = replace(film, video_id="f" * 32, uri="/elsewhere/film-01.mp4", frames=0, segments=0, transcript_lines=0)
    library.writer.complete([twin])
    with pytest.raises(UsageError, match=r"holds 2 films film-01\.mp4, .*: .*/elsewhere/film-01\.mp4"):
        film_environments(str(tmp_path / "library"), ["film-01.mp4"])
    library.writer.complete([replace(twin, uri="/elsewhere/Cafe\u0301.mp4")])
    (found,) = film_environments(str(tmp_path / "library"), ["Caf\u00e9.mp4"]).values()
    assert [video.video_id for video in found.videos] == ["f" * 32]
