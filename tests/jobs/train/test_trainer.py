"""Training by GRPO: settings, losses, memory, and a run that can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.local.model import load_local_model
from kinodex.agent.traces.trace import read_trace
from kinodex.jobs.known_answers import read_known
from kinodex.jobs.train.memory import static_memory
from kinodex.jobs.train.rewards import ALPHA
from kinodex.jobs.train.settings import MasterSettings
from kinodex.jobs.train.trainer import expected_warnings, make_trainer, save_master
from tests.support.command import bad
from tests.world.drawn_space import DRAWN

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


@pytest.fixture(scope="module")
def whole(home, tmp_path_factory):
    """A trainer that has trained all weights for a step."""
    return trained(home, tmp_path_factory.mktemp("whole"), settings(alpha=0.02))


@pytest.fixture(scope="module")
def adapted(home, tmp_path_factory):
    """A trainer that has trained adapters for a step, and saved them."""
    return trained(home, tmp_path_factory.mktemp("adapted"), settings(lora_rank=2, save_every=1))


def test_alpha_counts_where_answers_tie_unless_groups_are_scaled(whole, home, tmp_path):
    assert MasterSettings.read().scale_rewards == "none"
    assert tied_advantages(whole) == pytest.approx([-0.03, -0.01, 0.01, 0.03])
    deviations = [each / 1.291 for each in (-1.5, -0.5, 0.5, 1.5)]  # whatever alpha is
    scaled = trained(home, tmp_path, settings(alpha=0.02, scale_rewards="group"))
    assert tied_advantages(scaled) == pytest.approx(deviations, rel=0.01)


def bytes_of(tensors) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


@pytest.mark.parametrize("name", ["whole", "adapted"])
def test_the_memory_is_that_of_the_tensors(name, request):
    trainer = request.getfixturevalue(name)
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
    assert (name == "adapted") == (len(trained_ones) < len(parameters))


def test_adapters_alone_are_trained_and_merged_into_the_master(adapted, home, tmp_path):
    checkpoint = Path(adapted.args.output_dir) / "checkpoint-1"
    assert all("lora" in name for name, each in adapted.model.named_parameters() if each.requires_grad)
    assert (checkpoint / "adapter_model.safetensors").is_file()
    save_master(adapted, tmp_path / "master")
    before, after = weights(home / "model"), weights(tmp_path / "master")
    assert before.keys() == after.keys()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed and all("proj" in name for name in changed)
    for folder in (tmp_path / "master", checkpoint):
        assert load_local_model(str(folder), max_new_tokens=2).generator.context_tokens == 4096


STEPS = 2
TURNS, TURN_TOKENS = 5, 4
CHANGES = f"learning_rate = 0.01\nquestions = {QUESTIONS}\nrollouts = {ROLLOUTS}\nturn_tokens = {TURN_TOKENS}\n"


def weights(folder: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def train(kinodex, home, steps):
    (home / "changes.toml").write_text(CHANGES)
    return kinodex(
        "lab", "train", "master", home / "library", "--questions", home / "questions.jsonl", "--model", home / "model",
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
    exported = kinodex("lab", "rollouts", trace, "--questions", home / "questions.jsonl")
    right = json.loads(played.out)["option"] == known.answer
    assert json.loads(exported.out)["answer"] == float(right)


def test_what_cannot_be_trained_is_refused(kinodex, home, tmp_path):
    wrong = tmp_path / "wrong.toml"
    ask = [
        "lab",
        "train",
        "master",
        home / "library",
        "--questions",
        home / "questions.jsonl",
        "--out",
        tmp_path / "out",
    ]
    wrong.write_text("learning_rat = 1.0")
    bad(kinodex, *ask, "--model", "x", "--config", wrong, code=2, says="did you mean learning_rate?")
    bad(kinodex, *ask, "--model", tmp_path / "none", code=5, says="holds no config.json")
    other = tmp_path / "questions.jsonl"
    other.write_text((home / "questions.jsonl").read_text().replace("film-01.mp4", "film-09.mp4"))
    ask[ask.index("--questions") + 1] = other
    bad(kinodex, *ask, "--model", home / "model", code=2, says="holds no film film-09.mp4")
    ask[ask.index("--questions") + 1] = home / "questions.jsonl"
    bad(kinodex, *ask, "--model", home / "model", "--space", "nowhere", code=2, says=DRAWN)
