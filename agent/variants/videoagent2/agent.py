"""VideoAgent2 (arXiv 2504.04471): Algorithm 1, sections 3.1 to 3.4, appendices A and B.

The model reads; it sees no frame itself. The bank B_t holds captions C of consecutive parts, a summary S of each video
and what the tools returned; every clause and every thing in it carries its confidence (section 3.4). The paper leaves
open, and here is decided:

- A confidence is 0 where there is no answer (section 3.2 has 0 to 5, the prompt 1 to 5).
- The answer is that of the last assessment (line 17). If that is none, one of a question's options is chosen all the
  same, unless `AnswerRules` let it decline: the surest answer before it, else one last request for it.
- A tool looks at a frame a second of its range, 8 at most (a tracker 32, spread evenly); times stand for frame numbers.
- LaViLa's marks #C and #O are explained where captions have them: beside the captions, which all requests begin with.

`docs/papers.md` has the places in the paper.

Table 4's settings build on each other, as there. (1) `tool_confidence` off: no tool, nor the captioner, says how sure
it is. (2) `adjust_plan` off: the first plan is carried out step by step; the model only words the calls. The answer is
assessed between, and the last step ends the run. (3) `plan` off: the model calls tools and answers without reasoning
first; how sure the answer is still ends the run. (4) `tools` off: the answer is A_1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.search.video_choice import limit_videos
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import CLIP_S, caption_clips, summarize_video
from kinodex.agent.traces.events import Acted, Assessed
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.videoagent2.requests import (
    MOST_CONFIDENT,
    AdjustPlan,
    AnswerBank,
    Assess,
    Assessment,
    CallTool,
    CreatePlan,
    Plan,
    Toolbox,
    ToolCall,
)
from kinodex.agent.variants.videoagent2.tools import run_tool
from kinodex.agent.variants.words import Step, no_step, quoted, span

MOST_LABELS = 100
"""Labels of the library's detections that a plan may name."""


@dataclass(frozen=True, slots=True)
class VideoAgent2Parameters:
    """The paper's settings (section 4.1): n, cf_thr and T; and what Table 4 switches off."""

    segment_s: float = CLIP_S
    """Length of the clips that are described first, in seconds."""
    enough: float = MOST_CONFIDENT
    """The confidence from which an answer is final."""
    frames: int = 8
    """Looked at by one call of a tool."""
    track_frames: int = 32
    """Frames in which one call of the tracker follows things."""
    captions: int = 1000
    """Clips described at most; of longer videos the clips are longer."""
    videos: int = 4
    """How many videos are described and searched at most."""
    tool_confidence: bool = True
    """Tools and captions say how sure they are."""
    adjust_plan: bool = True
    """The plan is changed after each step; else the first is carried out as it is."""
    plan: bool = True
    """The model reasons and plans; else it calls tools and answers without reasoning first."""
    tools: bool = True
    """Tools look at the video; else the answer is made of the captions alone."""
    rounds: int = 5
    """Assessments: T."""

    def __post_init__(self) -> None:
        check_at_least(self, enough=1, frames=1, track_frames=1, captions=1, videos=1, rounds=1)
        if self.segment_s <= 0 or self.enough > MOST_CONFIDENT:
            limits = f"segment_s is above 0, enough at most {MOST_CONFIDENT}"
            raise BadSettings(f"got segment_s={self.segment_s}, enough={self.enough}; {limits}")


async def videoagent2(session: Session, parameters: VideoAgent2Parameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    return await _Search(session, parameters).run()


class _Search:
    """The state of Algorithm 1: the bank B_t in two parts, summaries and notes, and the plan P_t."""

    def __init__(self, session: Session, parameters: VideoAgent2Parameters) -> None:
        self.session, self.parameters = session, parameters
        self.summaries: tuple[Note, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.plan: tuple[str, ...] = ()
        self.step, self.thought, self.doubt = 0, "", ""
        self.rounds = parameters.rounds if session.account.budget.rounds is None else session.account.budget.rounds
        self.bank = 0
        self.best: Assessment | None = None
        self.labels: tuple[str, ...] = ()
        session.last_resort = self._last_resort

    async def run(self) -> Answer:
        await self._general_context()  # lines 1 and 2
        while True:  # line 3
            number = self.session.account.begin_round()
            assessment = await self._assess(number)  # line 4
            over = self.session.over() or ""
            sure = assessment is not None and assessment.confidence >= self.parameters.enough
            carried_out = not self.parameters.adjust_plan and 0 < len(self.plan) <= self.step
            if over or not self.parameters.tools or carried_out:
                return await self._answer(assessment, "" if sure else over)  # line 17
            if sure and assessment is not None:  # line 5
                self.doubt = await self.session.doubt(assessment, self.notes)
                if not self.doubt:
                    return await self._answer(assessment, "")
            call = await self._next_call(number, assessment)  # lines 8 to 12
            await self._retrieve(number, call)  # lines 13 and 14

    async def _general_context(self) -> None:
        """Caption the consecutive parts of the videos and summarise each video (section 3.1)."""
        question, session = self.session.question, self.session
        limits = self.parameters
        limit_videos(session, (question.text, *question.options), limits.videos)
        videos = session.environment.videos
        parts = sum(video.duration_s for video in videos) / self.parameters.segment_s
        segment_s = self.parameters.segment_s * max(1, math.ceil(parts / self.parameters.captions))
        captions = [self._noted(await caption_clips(session, video.video_id, segment_s)) for video in videos]
        self.notes = tuple(note for each in captions for note in each)
        self.bank, self.labels = len(self.notes), session.environment.detection_labels()[:MOST_LABELS]
        pending = [summarize_video(session, video.video_id, each) for video, each in zip(videos, captions, strict=True)]
        self.summaries = tuple(note for note in await gather_all(pending) if note is not None)
        self.notes += tuple(note for note in self._noted(session.prior_notes) if note not in self.notes)

    def _noted(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        return notes if self.parameters.tool_confidence else tuple(replace(note, confidence=None) for note in notes)

    async def _assess(self, number: int) -> Assessment | None:
        """Return the answer A_t and its confidence cf_t (section 3.2); None if the model gave no valid one."""
        settings: dict[str, Any] = {"reasoning": self.parameters.plan, "doubt": self.doubt}
        reply = await self.session.ask(Assess(**self._bank(), number=number, **settings))
        if reply is not None:
            if reply.confidence and (self.best is None or reply.confidence >= self.best.confidence):
                self.best, self.session.tentative = reply, (reply, self.notes)
            self.session.emit(Assessed(number, reply.confidence, MOST_CONFIDENT, reply.reasoning))
        return reply

    async def _next_call(self, number: int, assessment: Assessment | None) -> ToolCall | None:
        """Create the plan, or adjust it, and name its first tool call (section 3.3); None without a valid one."""
        given = {**self._bank(), "toolbox": self._toolbox(number)}
        confidence, doubt = (assessment.confidence, assessment.reasoning) if assessment else (0.0, "")
        doubt = self.doubt or doubt
        if not self.parameters.plan or (self.plan and not self.parameters.adjust_plan):
            self.step += 1
            action = await self.session.ask(CallTool(**given, plan=self.plan, step=self.step))
            return action.action if action else None
        plan: Plan | None
        if not self.plan:
            plan = await self.session.ask(CreatePlan(**given, doubt=doubt))
        else:
            plan = await self.session.ask(AdjustPlan(**given, plan=self.plan, doubt=doubt, confidence=confidence))
        if plan is None:
            return None
        self.plan, self.step, self.thought = tuple(plan.steps), 1, plan.reasoning
        return plan.action

    async def _retrieve(self, number: int, call: ToolCall | None) -> None:
        """Call the tool and add what it found to the bank (section 3.4)."""
        if call is None:
            self.session.emit(Acted(number, "none", {}, problem="no valid call in two attempts"))
            return
        found, problem = await run_tool(self.session, call, self._toolbox(number))
        self.session.emit(Acted(number, call.tool, call.model_dump(exclude={"tool"}), self.thought, found, problem))
        self.notes += found

    async def _answer(self, assessment: Assessment | None, over: str) -> Answer:
        """Return the answer of the last assessment; if one has to be chosen and it gave none, the best before it, or
        one that the bank gives.
        """
        if assessment is None or assessment.confidence == 0:
            if not self.session.rules.force_choice and over in ("", "rounds"):
                return self.session.answer(None, self.notes, "insufficient_evidence", over)
            assessment = self.best
        if assessment is None:
            return await self.session.conclude(AnswerBank(**self._bank()), over)
        return self.session.accept(assessment, self.notes, sufficient=True, over=over, forced=bool(over))

    def _last_resort(self) -> AnswerBank | None:
        """Return the request for the best answer; none if the last assessment knew all that is known now."""
        known = self.session.tentative[1] if self.session.tentative else ()
        return AnswerBank(**self._bank()) if len(self.notes) > len(known) else None

    def _bank(self) -> dict[str, Any]:
        question, videos = self.session.question, self.session.environment.videos
        bank = {"summaries": self.summaries, "notes": self.notes, "bank": self.bank}
        return {"question": question, "videos": videos, **bank}

    def _toolbox(self, number: int) -> Toolbox:
        limits = self.parameters
        return Toolbox(self.rounds - number, limits.frames, limits.track_frames, limits.tool_confidence, self.labels)


NO_CONFIDENCE = {"tool_confidence": False}
NO_ADJUSTING = {**NO_CONFIDENCE, "adjust_plan": False}
NO_PLAN = {**NO_ADJUSTING, "plan": False}


def _label(step: Step, otherwise: str) -> str:
    label = step["arguments"].get("label")
    return quoted([label]) if label else otherwise


def _assumed(request: Request[Any]) -> Mapping[str, Any] | None:
    """Never sure, with a call about another part of the first video at each step."""
    if isinstance(request, Assess):
        return {**request.example(), "confidence": MOST_CONFIDENT / 2}
    if not isinstance(request, CreatePlan | AdjustPlan | CallTool):
        return None
    example, video = request.example(), request.videos[0]
    start_s = video.start_s + video.duration_s / (request.toolbox.calls_left + 2)
    call = {**example["action"], "start_s": start_s, "end_s": min(video.end_s, start_s + request.toolbox.frames)}
    return {**example, "action": call}


VIDEOAGENT2 = Variant(
    "videoagent2",
    "captions of everything, then a plan that is adjusted, one tool a step, led by confidences (arXiv 2504.04471)",
    videoagent2,
    lambda longest_s: VideoAgent2Parameters(),
    roles=("policy", "captioner", "vision"),
    chooses=True,
    uses=("captions", "detections"),
    ablations={
        "no tool confidence": NO_CONFIDENCE,
        "no plan adjusting": NO_ADJUSTING,
        "no plan": NO_PLAN,
        "no tools": {**NO_PLAN, "tools": False},
    },
    needs_language=True,
    plain="Puts the whole video into words, makes a plan, and checks details until it is sure.",
    words={
        "caption": lambda step: f"had {span(step['arguments'])} put into words",
        "detect": lambda step: f"looked for {_label(step, 'things')} in {span(step['arguments'])}",
        "zoom_caption": lambda step: f"zoomed in at {span(step['arguments'])} and had it put into words",
        "zoom_detect": lambda step: f"zoomed in at {span(step['arguments'])} and looked for {_label(step, 'things')}",
        "track": lambda step: f"followed {_label(step, 'a thing')} from {span(step['arguments'])}",
        "none": no_step,
    },
    assumes=_assumed,
)
