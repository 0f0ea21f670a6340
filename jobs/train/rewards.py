"""Training of a LongVideoAgent master (arXiv 2512.20618, section 3.2): its two rewards, and runs as rollouts.

The reward of a run is the sum of both:

    R(tau) = alpha * sum over t of r_fmt(t) + r_ans

r_fmt says for every turn whether it is one well-formed action, r_ans at the end whether the answer is the true
option. Nothing else is rewarded.

What the master thinks aloud, in <think> before the action, is no part of the action string; any other text beside it
is extraneous. Only the tags of Algorithm 1, with their ends, count as well-formed, though the agent reads others too.
alpha is not given, and has to be small, since the sum pays for every further turn (docs/training.md).
`docs/papers.md` says what else was decided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kinodex.agent.errors import InvalidReply, NotATrace
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Turn
from kinodex.agent.requests.answer import chosen_option
from kinodex.agent.traces.trace import Record
from kinodex.agent.variants.longvideoagent.requests import MASTER_REQUESTS, Action
from kinodex.agent.variants.longvideoagent.turns import until_action

ALPHA = 0.02

_TAG = re.compile(r"</?(?:visual_query|request_grounding|answer)>")
_ACTION = r"\s*<(?P<tag>visual_query|request_grounding|answer)>(?P<content>.*)</(?P=tag)>\s*"
_TURN = re.compile(rf"\s*(?:<think>.*?</think>)?{_ACTION}", re.DOTALL)
_OPENED_TURN = re.compile(rf"(?:(?!</?think>).)*</think>{_ACTION}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of one rollout: `structure` has r_fmt of each turn (0 or 1), `answer` is r_ans."""

    structure: tuple[float, ...]
    answer: float
    alpha: float = ALPHA

    @property
    def total(self) -> float:
        return self.alpha * sum(self.structure) + self.answer

    @property
    def per_turn(self) -> tuple[float, ...]:
        """The reward of each turn, the answer's with the last; their sum is `total`."""
        earned = [self.alpha * valid for valid in self.structure]
        return (*earned[:-1], earned[-1] + self.answer) if earned else ()


def rewards(
    turns: Sequence[str], question: Question, true_option: int, alpha: float = ALPHA, *, thinking_open: bool = False
) -> Rewards:
    """Compute the rewards of a master's turns; `true_option` is an index of the question's options.

    `thinking_open`: the chat template begins each turn inside <think>.
    """
    last = turns[-1] if turns else ""
    structure = tuple(structural_validity(turn, thinking_open=thinking_open) for turn in turns)
    return Rewards(structure, answer_correctness(last, question, true_option), alpha)


def structural_validity(turn: str, *, thinking_open: bool = False) -> float:
    """r_fmt: 1 for exactly one action with its end and no other text beside it, 0 for anything else."""
    action = (_OPENED_TURN if thinking_open else _TURN).fullmatch(turn)
    if action is None or len(_TAG.findall(turn)) != 2:
        return 0.0
    return float(action["tag"] == "request_grounding" or bool(action["content"].strip()))


def answer_correctness(turn: str, question: Question, true_option: int) -> float:
    """r_ans: 1 if the turn ends the run with the true option, 0 if with another, with none, or not at all."""
    try:
        action = Action.from_text(turn)
    except InvalidReply:
        return 0.0
    return float(action.action == "answer" and chosen_option(question, action) == true_option)


# Runs of LongVideoAgent as rollouts to train on: the master's conversation with the reward of each of its turns.
#
# A rollout is read from the records of a run, live or from its trace; the true option comes from the caller.


@dataclass(frozen=True, slots=True)
class Rollout:
    """One run: `messages` begin with the prompt, and every "assistant" among them is a turn of `rewards`."""

    question: Question
    films: tuple[str, ...]
    messages: tuple[Turn, ...]
    rewards: Rewards

    def as_row(self) -> dict[str, Any]:
        """As JSON values: `rewards` has one number for each assistant message, their sum is `total`."""
        return {
            "question": self.question.text,
            "options": list(self.question.options),
            "films": list(self.films),
            "messages": [{"role": turn.speaker, "content": turn.text} for turn in self.messages],
            "rewards": list(self.rewards.per_turn),
            "structure": list(self.rewards.structure),
            "answer": self.rewards.answer,
            "total": self.rewards.total,
        }


def rollout(
    records: Sequence[Record], true_option: int, alpha: float = ALPHA, *, thinking_open: bool = False
) -> Rollout:
    """The rollout in the records of a run; the arguments are those of `rewards`.

    Raises `NotATrace` if there is no master in it.
    """
    question, films = read_question(records)
    messages = _messages(records)
    turns = [turn.text for turn in messages if turn.speaker == "assistant"]
    earned = rewards(turns, question, true_option, alpha, thinking_open=thinking_open)
    return Rollout(question, films, messages, earned)


def read_question(records: Sequence[Record]) -> tuple[Question, tuple[str, ...]]:
    question, videos = records[0]["question"], records[0]["videos"]
    return Question(question["text"], tuple(question["options"])), tuple(video["title"] for video in videos)


def as_line(row: Rollout) -> str:
    return json.dumps(row.as_row(), ensure_ascii=False)


def _messages(records: Sequence[Record]) -> tuple[Turn, ...]:
    """The whole conversation: the last thing that the master was asked holds all that was before."""
    exchanges = [each for each in records if each["event"] == "Exchanged" and each["request"] in MASTER_REQUESTS]
    # a turn asked for twice (an answer that names no option) counts as it was said first
    exchanges = [each for each in exchanges if each["inputs"]["attempt"] == 0]
    if not exchanges:
        raise NotATrace("no master spoke in this run; give a trace of --agent longvideoagent")
    last = exchanges[-1]
    before = [Turn(each["speaker"], each["text"]) for each in last["inputs"]["turns"]]
    return (Turn("user", exchanges[0]["prompt"]), *before, Turn("assistant", until_action(last["raw"])))
