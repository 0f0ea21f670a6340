"""LongVideoAgent (arXiv 2512.20618): Algorithm 1, section 3.1, Tables 1, 3 and 5.

A master that only reads takes one action a turn, K turns at most: it has a clip located, has frames of that clip
looked at, or answers. An `Episode` carries out its actions; `jobs.train.rewards` has the rewards that train it. Three
models: the roles "policy" (the master), "grounding" and "vision". The paper leaves open, and here is decided:

- Frames of a look (section 3.1 says "frames"): 15, as in the published code, spread evenly.
- A visual query before a clip was located: frames of all of V, which line 15 has (of the video that matches best).
- A request for grounding goes to the agent with the question and the subtitles alone (line 18), each time anew.
- Where there are no subtitles, the clip whose pictures match the question best is located.
- After K turns without an answer there is none (line 29). Of a question with options one is chosen, as in the published
  evaluation (`AnswerRules`): turn K is the answer. So is the only turn of the setting without agents (Table 4a).

`docs/papers.md` has the places in the paper, and says where the published code departs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.request import Request
from kinodex.agent.session import Session
from kinodex.agent.variants.base import THOUGHT, Variant
from kinodex.agent.variants.longvideoagent.episode import answer_now, begin_episode, next_action, take_step
from kinodex.agent.variants.longvideoagent.parameters import LongVideoAgentParameters
from kinodex.agent.variants.longvideoagent.requests import AnswerNow, ChooseAction, LocateClips
from kinodex.agent.variants.words import QUOTED, Step, for_query, joined, no_step, span


async def longvideoagent(session: Session, parameters: LongVideoAgentParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the run in the middle of a turn."""
    episode = begin_episode(session, parameters)
    session.last_resort = lambda: answer_now(episode) if episode.has_evidence else None
    while True:  # line 3
        session.account.begin_round()
        over = session.over()
        is_turn_k = over == "rounds" and episode.steps > 1 and not session.rules.force_choice
        if over and not is_turn_k:
            return await session.conclude(answer_now(episode), over)
        request = next_action(episode)
        if is_turn_k:
            request = replace(request, declining=session.rules.at_the_end)
        exchange = await session.exchange(request)  # lines 4 to 11
        if exchange.reply is not None and exchange.reply.declines and request.declining != "allowed":
            session.account.count_declined()
            exchange = replace(exchange, reply=None, invalid=request.refusal())
        if exchange.reply is not None and not exchange.reply.acts:  # lines 20 to 23
            sufficient = exchange.reply.action == "answer"
            doubt = await session.doubt(exchange.reply, episode.basis) if sufficient else ""
            if not doubt:
                reason = "" if sufficient else over or ""
                return session.accept(exchange.reply, episode.basis, sufficient=sufficient, reason=reason)
            exchange = replace(exchange, reply=None, invalid=doubt)
        episode = await take_step(session, episode, exchange)  # lines 12 to 19, 24 to 27
        if is_turn_k:  # line 29
            return session.answer(None, (), "budget_exhausted", "rounds")


def _searched(step: Step) -> str:
    found = joined([span(note) for note in step["notes"][:QUOTED]])
    return "searched what is said" + (f", which led to {found}" if found else "")


def _assumed(request: Request[Any]) -> Mapping[str, Any] | str | None:
    """Return one clip after the other is located and looked at; the last turn is the answer."""
    match request:
        case ChooseAction():
            looks = request.vision and len(request.turns) // 2 % 2 == 1
            tag = "visual_query" if looks else "request_grounding"
            return f"<think>{THOUGHT}</think><{tag}>{request.question.text}</{tag}>"
        case AnswerNow():
            return f"<think>{THOUGHT}</think><answer>{'A' if request.question.options else THOUGHT}</answer>"
        case LocateClips():
            return {**request.example(), "clips": [request.clips[0].number]}
    return None


LONGVIDEOAGENT = Variant(
    "longvideoagent",
    "a master that only reads has clips located and looked at by two other models (arXiv 2512.20618)",
    longvideoagent,
    lambda longest_s: LongVideoAgentParameters(),
    roles=("policy", "grounding", "vision"),
    chooses=True,
    uses=("speech",),
    ablations={"no vision agent": {"vision": False}, "no agents": {"rounds": 1}},
    needs_language=True,
    plain=("Reads what is said, and has the pictures looked at only where that helps. Good for films with speech."),
    words={
        "request_grounding": _searched,
        "visual_query": lambda step: f"had the frames there searched{for_query(step)}",
        "malformed": no_step,
    },
    assumes=_assumed,
)
