"""Replies of a language model that is not there, for rehearsals: usable, of usual length, and made without a model.

They are for agents that think in words. Such an agent goes on for a usual number of steps: nobody knows how long a
language model will search. The numbers are those that come near to the rule server's on sketch films.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.core.protocol import Request
from agent.models.rulebased import judge_notes
from agent.requests.answer import example_answer
from agent.requests.tree import Decide
from agent.variants.longvideoagent import requests as longvideoagent
from agent.variants.videoagent2.requests import AdjustPlan, Assess, CallTool, CreatePlan
from agent.variants.videoseek import requests as videoseek

THOUGHT = "Nothing that is known so far shows it clearly; a closer look at the next part may."
SEEK_STEPS = 5
"""Calls of tools before VideoSeek answers."""
MASTER_TURNS = 3
"""Turns of a LongVideoAgent master, the last of which is its answer."""
ASSESSMENTS = 3
"""Assessments of VideoAgent2, the last of which is sure."""
SURE, UNSURE = 5, 2
LOOKS = ("OverviewVideo", "SkimRange", "FocusClip", "ReadFrames", "CaptionFrames")
"""Requests to tell what frames show: their examples are as long as what a model tells, and cost no time."""


def reply_in_words(request: Request[Any], *, restless: bool = False) -> str | None:
    """Write the reply to a request that takes language, as a model would send it; None for other requests.

    A `restless` searcher goes on to its last step, whatever it finds.
    """
    match request:
        case videoseek.Think():
            return THOUGHT
        case videoseek.Act():
            return json.dumps(_seek(request, request.steps if restless else SEEK_STEPS))
        case longvideoagent.ChooseAction() | longvideoagent.AnswerNow():
            return _master(request, restless)
        case Assess():
            return json.dumps(_assess(request))
        case CreatePlan() | AdjustPlan() | CallTool():
            return json.dumps(_plan(request))
    return json.dumps(request.example()) if type(request).__name__ in LOOKS else None


def explore_on(request: Request[Any]) -> str | None:
    """Write the decision to explore the best open segment; None if the request is for something else, or none is."""
    if not isinstance(request, Decide) or request.must_answer:
        return None
    open_ones = [each for each in request.candidates if each.explorable]
    if not open_ones:
        return None
    best = max(open_ones, key=lambda each: each.score or 0.0).segment.number
    blank: dict[str, object] = {"option": None, "answer": None, "evidence": []}
    return json.dumps({"reasoning": THOUGHT, "action": "explore", "segment": best, **blank})


def _seek(request: videoseek.Act, steps: int) -> Mapping[str, Any]:
    """Overview first, then parts of the first video one after the other, skimmed and looked at in turn."""
    step = sum(turn.speaker == "assistant" for turn in request.turns) // 2
    video, limits = request.videos[0], request.limits
    named = {"video": video.video_id if len(request.videos) > 1 else None}
    if step == 0:
        return {"tool": "overview", **named}
    if step >= steps:
        return {"tool": "answer", "sufficient": True, **example_answer(request.question, range(1, 2))}
    start_s = video.start_s + video.duration_s * (step - 1) / steps
    tool, length_s = (
        ("focus", limits.focus_most_s) if step % 2 else ("skim", max(limits.skim_least_s, video.duration_s / 2))
    )
    start_s = max(video.start_s, min(start_s, video.end_s - length_s))
    return {"tool": tool, **named, "start_s": start_s, "end_s": min(video.end_s, start_s + length_s), "query": THOUGHT}


def _master(request: longvideoagent.ChooseAction | longvideoagent.AnswerNow, restless: bool) -> str:
    """A clip is located, then looked at, then the answer comes."""
    turn = len(request.turns) // 2
    if isinstance(request, longvideoagent.AnswerNow) or (turn >= MASTER_TURNS - 1 and not restless):
        example = example_answer(request.question, ())
        return f"<think>{THOUGHT}</think><answer>{example['option'] or example['answer']}</answer>"
    tag = "visual_query" if turn % 2 and request.vision else "request_grounding"
    return f"<think>{THOUGHT}</think><{tag}>{request.question.text}</{tag}>"


def _assess(request: Assess) -> Mapping[str, Any]:
    """Sure if a note states an option outright, or after the usual number of assessments."""
    settled = request.number >= ASSESSMENTS or judge_notes.is_settled(
        judge_notes.judge(request.question, request.notes)
    )
    example = example_answer(request.question, range(1, len(request.notes) + 1))
    return {**example, "reasoning": THOUGHT, "confidence": SURE if settled else UNSURE}


def _plan(request: CreatePlan | AdjustPlan | CallTool) -> Mapping[str, Any]:
    """The example's call, each time of another part of the first video."""
    example, video = dict(request.example()), request.videos[0]
    start_s = video.start_s + video.duration_s / (request.toolbox.calls_left + 2)
    example["action"] = {**example["action"], "start_s": start_s, "end_s": min(video.end_s, start_s + 8.0)}
    return example
