"""The two rewards of LongVideoAgent, and runs exported as rollouts with what each turn earned."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent.ask_questions import ask
from agent.core.protocol import Exchange, Request
from agent.core.question import Question
from agent.trace.trace import trace_to
from agent.variants.longvideoagent.requests import AnswerNow, ChooseAction, LocateClips, ReadFrames
from agent.variants.longvideoagent.rewards import ALPHA, answer_correctness, rewards, structural_validity
from tests.support.agent_library import environment_of, film, make_library
from tests.support.command import bad

QUESTION = Question("What flies over the desert?", ("a red kite", "a crow"))


@pytest.mark.parametrize(
    ("turn", "valid"),
    [
        ("<answer>B</answer>", 1),
        ("  <think>The kite is <em>red</em>.</think>\n<answer>A</answer>\n", 1),
        ("<visual_query>what flies?</visual_query>", 1),
        ("<request_grounding></request_grounding>", 1),
        ("<request_grounding>the desert</request_grounding>", 1),
        ("<request_grounding>", 0),
        ("<visual_query> </visual_query>", 0),
        ("<answer>B", 0),
        ("I think <answer>B</answer>", 0),
        ("<answer>B</answer> for sure", 0),
        ("<think>hm<answer>B</answer>", 0),
        ("<answer>A</answer><answer>B</answer>", 0),
        ("<visual_query>a</visual_query><answer>B</answer>", 0),
        ("<answer><visual_query>a</visual_query></answer>", 0),
        ("<visual_query>a</answer>", 0),
        ('{"action": "answer", "option": "B"}', 0),
        ("", 0),
    ],
)
def test_a_turn_is_well_formed_or_not(turn, valid):
    assert structural_validity(turn) == valid


@pytest.mark.parametrize(
    ("turn", "right"),
    [
        ("<answer>B</answer>", 1),
        ("<answer>b.</answer>", 1),
        ("<answer>a crow</answer>", 1),
        ("surely <answer>B</answer>", 1),
        ("<answer>A</answer>", 0),
        ("<answer>insufficient_evidence</answer>", 0),
        ("<answer>E</answer>", 0),
        ("<answer></answer>", 0),
        ("<visual_query>B</visual_query>", 0),
        ("B", 0),
        ("<answer>A</answer><answer>B</answer>", 0),
    ],
)
def test_an_answer_is_the_true_option_or_not(turn, right):
    assert answer_correctness(turn, QUESTION, 1) == right


def test_the_sum_is_alpha_for_each_well_formed_turn_and_one_for_the_answer():
    earned = rewards(["<request_grounding></request_grounding>", "what?", "<answer>B</answer>"], QUESTION, 1, 0.2)
    assert earned.structure == (1, 0, 1)
    assert earned.total == pytest.approx(0.2 * 2 + 1)
    assert earned.per_turn == pytest.approx((0.2, 0.0, 1.2))
    assert rewards([], QUESTION, 1).per_turn == ()


def test_no_number_of_turns_is_worth_the_answer():
    talk = rewards(["<visual_query>a</visual_query>"] * 5, QUESTION, 1)
    assert talk.total < rewards(["<answer>B</answer>"], QUESTION, 1).total


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
                return Exchange(request.Reply(clips=[1], reason=""), None)
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
