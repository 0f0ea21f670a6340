"""Runs of LongVideoAgent as rollouts to train on: the master's conversation with the reward of each of its turns.

A rollout is read from the records of a run, live or from its trace; the true option comes from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kinodex.agent.errors import NotATrace
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Turn
from kinodex.agent.traces.trace import Record
from kinodex.agent.variants.longvideoagent.requests import MASTER_REQUESTS
from kinodex.agent.variants.longvideoagent.turns import until_action
from kinodex.jobs.train.rewards import ALPHA, Rewards, rewards


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
    """Return the rollout in the records of a run; the arguments are those of `rewards`.

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
    """Return the whole conversation: the last thing that the master was asked holds all that was before."""
    exchanges = [each for each in records if each["event"] == "Exchanged" and each["request"] in MASTER_REQUESTS]
    # a turn asked for twice (an answer that names no option) counts as it was said first
    exchanges = [each for each in exchanges if each["inputs"]["attempt"] == 0]
    if not exchanges:
        raise NotATrace("no master spoke in this run; give a trace of --agent longvideoagent")
    last = exchanges[-1]
    before = [Turn(each["speaker"], each["text"]) for each in last["inputs"]["turns"]]
    return (Turn("user", exchanges[0]["prompt"]), *before, Turn("assistant", until_action(last["raw"])))
