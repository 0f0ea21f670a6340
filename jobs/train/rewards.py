"""Training of a LongVideoAgent master (arXiv 2512.20618, section 3.2): its two rewards.

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

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.answer import chosen_option
from kinodex.agent.variants.longvideoagent.requests import Action

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
