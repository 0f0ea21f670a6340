"""A master of LongVideoAgent is trained end to end: on a real library, by runs of the agent itself."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.trace import read_trace
from kinodex.agent.variants.longvideoagent_training import ALPHA
from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.vectors import Vectors
from kinodex.jobs.errors import UsageError
from kinodex.jobs.known_answers import read_known
from kinodex.jobs.train.trainer import film_environments
from tests.support.command import bad
from tests.support.models.tiny_models import TINY, write_model

pytestmark = pytest.mark.slow

STEPS, QUESTIONS, ROLLOUTS = 2, 2, 4
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
    wrong.write_text("rollouts = 1")
    bad(kinodex, *ask, "--model", "x", "--config", wrong, code=2, says="greater than or equal to 2")
    bad(kinodex, *ask, "--model", tmp_path / "none", code=5, says="holds no config.json")
    other = tmp_path / "questions.jsonl"
    other.write_text((home / "questions.jsonl").read_text().replace("film-01.mp4", "film-09.mp4"))
    ask[4] = other
    bad(kinodex, *ask, "--model", home / "model", code=2, says="holds no film film-09.mp4")
    other.write_text('{"video": "film-01.mp4"}\n')
    bad(kinodex, *ask, "--model", home / "model", code=2, says="line 1: not a question")
    other.write_bytes(b"\xff\xfe")
    bad(kinodex, *ask, "--model", home / "model", code=2, says="line 1: ")
    other.write_text("")
    bad(kinodex, *ask, "--model", home / "model", code=2, says="holds no question")
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
