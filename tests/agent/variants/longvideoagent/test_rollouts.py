"""Runs exported as rollouts, with what each turn earned."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.protocol import Exchange, Question, Request
from kinodex.agent.trace import trace_to
from kinodex.agent.variants.longvideoagent_requests import AnswerNow, ChooseAction, LocateClips, ReadFrames
from kinodex.agent.variants.longvideoagent_training import ALPHA
from tests.support.command import bad
from tests.support.libraries.agent_library import environment_of, film, make_library

QUESTION = Question("What flies over the desert?", ("a red kite", "a crow"))


class Master:
    """Says these turns, and for the other roles what they would say."""

    name = "master"
    has_language = True

    def __init__(self, *turns: str) -> None:
        self.turns = iter(turns)

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        match request:
            case ChooseAction() | AnswerNow():
                said = next(self.turns)
                return Exchange(request.Reply.from_text(said), None, raw=said)
            case LocateClips():
                return Exchange(request.Reply(clips=[1], reasoning=""), None)
            case ReadFrames():
                return Exchange(request.Reply(observation="a crow in the air"), None)
        raise TypeError(type(request).__name__)


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rollouts")
    environment = environment_of(make_library(folder / "library", {"film-01": film(1, 60)}))
    master = Master(
        "<request_grounding>desert</request_grounding>",
        "Look! <visual_query>what flies?</visual_query> and then some",
        "<think>It is the crow.</think><answer>B</answer>",
    )
    with trace_to(folder / "run.jsonl") as write:
        asyncio.run(ask(QUESTION, environment, master, agent="longvideoagent", on_event=write))
    return folder / "run.jsonl"


def questions(path, *answers, film="film-01.mp4"):
    rows = [
        {"video": film, "kind": "needle", "question": QUESTION.text, "options": list(QUESTION.options),
         "answer": answer, "evidence": [0.0, 1.0]}
        for answer in answers
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_trace_becomes_a_rollout(kinodex, traced, tmp_path):
    known = questions(tmp_path / "questions.jsonl", 1)
    row = json.loads(kinodex("rollouts", traced, "--questions", known).out)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"] * 3
    assert QUESTION.text in row["messages"][0]["content"]
    assert "<clip_" in row["messages"][2]["content"]
    assert "a crow in the air" in row["messages"][4]["content"]
    assert row["structure"] == [1, 0, 1]
    assert row["rewards"] == pytest.approx([ALPHA, 0, 1 + ALPHA])
    assert (row["answer"], row["total"], row["films"]) == (1, pytest.approx(1 + 2 * ALPHA), ["film-01"])

    out = tmp_path / "rollouts.jsonl"
    assert kinodex("rollouts", traced, traced, "--questions", known, "--out", out, "--alpha", "0").code == 0
    assert [json.loads(line)["total"] for line in out.read_text().splitlines()] == [1, 1]


def test_the_label_must_be_known(kinodex, traced, tmp_path):
    known = questions(tmp_path / "questions.jsonl", 0, 1)
    bad(kinodex, "rollouts", traced, "--questions", known, code=2, says="different answers are known")
    known.write_text(known.read_text().replace(QUESTION.text, "Another?"))
    bad(kinodex, "rollouts", traced, "--questions", known, code=2, says="no answer is known")
    known.write_text("")
    bad(kinodex, "rollouts", traced, "--questions", known, code=2, says="holds no question")


def test_only_masters_have_rollouts(kinodex, tmp_path):
    environment = environment_of(make_library(tmp_path / "library", {"film-01": film(1, 60)}))

    class Guesser:
        name = "guesser"
        has_language = True

        async def ask(self, request):
            return Exchange(request.Reply(action="answer", option="B", answer=None, evidence=[]), None)

    with trace_to(tmp_path / "run.jsonl") as write:
        asyncio.run(ask(QUESTION, environment, Guesser(), agent="blind", on_event=write))
    known = questions(tmp_path / "questions.jsonl", 1)
    bad(kinodex, "rollouts", tmp_path / "run.jsonl", "--questions", known, code=2, says="no master spoke")
