"""VideoAgent2 (arXiv 2504.04471): Algorithm 1, sections 3.1 to 3.4, appendices A and B.

The model reads; it sees no frame itself. The bank B_t holds captions C of consecutive parts, a summary S of each video
and what the tools returned; every clause and every thing in it carries its confidence (section 3.4). `docs/papers.md`
says what the paper leaves open and what was decided.

Table 4's settings build on each other, as there. (1) `tool_confidence` off: no tool, nor the captioner, says how sure
it is. (2) `adjust_plan` off: the first plan is carried out step by step; the model only words the calls. The answer is
assessed between, and the last step ends the run. (3) `plan` off: the model calls tools and answers without reasoning
first; how sure the answer is still ends the run. (4) `tools` off: the answer is A_1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field, FiniteFloat, model_validator

from kinodex.agent.anchors import limit_videos
from kinodex.agent.answer import Answer
from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.agent.errors import AllRejected, BadSettings, InvalidReply, ModelRejected, NeedsLanguage
from kinodex.agent.limits import gather_all
from kinodex.agent.models.rules import clauses, rule
from kinodex.agent.protocol import (
    Note,
    Question,
    R,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Video,
    described,
    named_video,
    read_alone,
    read_as,
)
from kinodex.agent.replies import (
    NULL,
    Bounds,
    Confidence,
    Joint,
    Schema,
    Seconds,
    WholeNumber,
    bound_schema,
    flat_call,
    on_scale,
    one_of,
    says_nothing,
    strict_schema,
    without_reasoning,
)
from kinodex.agent.requests.answer import (
    Answered,
    AnswerNotes,
    InParts,
    OfRun,
    check_answer,
    check_not_refused,
    letters,
)
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import CLIP_S, caption_clips, caption_spans, summarize_video
from kinodex.agent.tools.detection import WHOLE, Box, Detected, Found, Track, detect, track, zoom
from kinodex.agent.trace import Acted, Assessed
from kinodex.agent.tree import Form, show_chapters
from kinodex.agent.variants.base import PAPER_FORM, Step, Variant, check_at_least, no_step, quoted, span
from kinodex.index.nesting import parse_json

MOST_CONFIDENT = 5
"""The upper end of the scale of an answer's confidence; 0 is no answer."""
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
    anchors_from: AnchorsFrom = "all"
    """By what videos are chosen from many: pictures, words (speech, text on screen, captions), or both."""
    chapters: bool = False
    """Prompts list the titles and times of the library's scenes or chapters."""
    form: Form = "ours"
    """"paper": the paper's rules where ours differ: the answer is that of the last assessment, also if that is none."""

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
        limit_videos(session, (question.text, *question.options), limits.videos, limits.anchors_from)
        if limits.chapters:
            show_chapters(session, summaries=False)
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
        """The answer A_t and its confidence cf_t (section 3.2); None if the model gave no valid one."""
        settings: dict[str, Any] = {"most": self.rounds, "reasoning": self.parameters.plan, "doubt": self.doubt}
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
        """The answer of the last assessment; if it gave none, the best one before it, else one that the bank gives.

        By the paper there then is none, unless one has to be chosen.
        """
        if assessment is None or assessment.confidence == 0:
            if self.parameters.form == "paper" and not self.session.rules.force_choice:
                return self.session.answer(None, self.notes, "insufficient_evidence", over)
            assessment = self.best
        if assessment is None:
            return await self.session.conclude(AnswerBank(**self._bank()), over)
        return self.session.accept(assessment, self.notes, sufficient=True, over=over, forced=bool(over))

    def _last_resort(self) -> AnswerBank | None:
        """The request for the best answer; none if the last assessment knew all that is known now."""
        known = self.session.tentative[1] if self.session.tentative else ()
        return AnswerBank(**self._bank()) if len(self.notes) > len(known) else None

    def _bank(self) -> dict[str, Any]:
        question, videos = self.session.question, self.session.environment.videos
        bank = {"summaries": self.summaries, "notes": self.notes, "bank": self.bank, "chapters": self.session.chapters}
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
    uses=("captions", "detections"),
    ablations={
        "no tool confidence": NO_CONFIDENCE,
        "no plan adjusting": NO_ADJUSTING,
        "no plan": NO_PLAN,
        "no tools": {**NO_PLAN, "tools": False},
        **PAPER_FORM,
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


# The five tools of VideoAgent2 (arXiv 2504.04471, section 4.1 and appendix A): captions, things, enlargements, tracks.
#
# Their findings are notes in words, in which every clause and every thing has its own confidence. Images are captioned
# by the role "vision"; things are found and followed by `agent.tools.detection`, which takes the place of YOLOv11 and
# SAM2. A look that failed (the call cannot be done, the reply was invalid twice, the server refused the pictures)
# leaves a note that says so, which is no evidence; "nothing found" says who looked, since likeness alone may miss a
# thing.

AROUND = 5
"""Frames before and after one in which a thing is looked for too: the paper's alpha."""
MOST_THINGS = 16
"""Named in a note of one frame, the surest first."""
MOST_TRACKS = 8
"""Tracks in the notes of one call, the longest first."""
FAILED = "this look failed and says nothing about the video"
Look = tuple[Note, ...] | str
"""What a tool found, or in words that there is nothing."""


async def run_tool(session: Session, call: ToolCall, toolbox: Toolbox) -> tuple[tuple[Note, ...], str]:
    """Run a checked call; returns its findings, and why it failed ("" if it did not).

    A note for each frame, from "track" one for each thing; one note that says so if nothing is found or the look
    failed. Raises `AllRejected` for a server that refuses every request.
    """
    environment = session.environment
    video = environment.video(call.video)
    if not video.has_pictures:
        return await _read(session, video, call, toolbox), ""
    end_s = min(call.start_s if call.end_s is None or call.tool.startswith("zoom") else call.end_s, video.end_s)
    until_s = end_s if end_s > call.start_s else environment.shown_until(video.video_id, call.start_s)
    try:
        if call.tool == "track":  # appendix A.3
            span_s = call.start_s, until_s
            things = await track(session, video.video_id, call.label or "", *span_s, toolbox.track_frames)
            found: Look = _track_notes(things, call, toolbox) or _nothing(call, things)
        else:
            left = session.account.frames_left
            most = toolbox.frames if left is None else min(toolbox.frames, left)
            count = max(1, min(most, math.ceil(end_s - call.start_s)))  # one a second, as in the paper
            frames = environment.frames_between(video.video_id, call.start_s, end_s, count)
            look = _caption if call.tool.endswith("caption") else _detect
            found = await look(session, frames, call, toolbox)
    except (InvalidReply, ModelRejected) as error:
        if isinstance(error, AllRejected):
            raise
        note = Note(video.video_id, call.start_s, until_s, _source(call), f"{FAILED}: {error}", failed=True)
        return (note,), str(error)
    if isinstance(found, str):  # why there is nothing
        found = (Note(video.video_id, call.start_s, until_s, _source(call), found),)
    return found, ""


async def _read(session: Session, video: Video, call: ToolCall, toolbox: Toolbox) -> tuple[Note, ...]:
    """Words of a range of a video without pictures, line by line, in the place of captions of frames."""
    environment, end_s = session.environment, call.start_s if call.end_s is None else min(call.end_s, video.end_s)
    count = max(1, min(toolbox.frames, math.ceil(end_s - call.start_s)))
    times_s = environment.times_between(video.video_id, call.start_s, end_s, count)
    spans_s = [(time_s, environment.shown_until(video.video_id, time_s)) for time_s in times_s]
    notes = await caption_spans(session, video.video_id, spans_s)
    return tuple(
        replace(each, source=_source(call), text=each.text + _sure(each.confidence, toolbox), confidence=None)
        for each in notes
    )


async def _caption(session: Session, frames: tuple[ShownFrame, ...], call: ToolCall, toolbox: Toolbox) -> Look:
    """Captions of frames, with a confidence for each clause (appendix A.1)."""
    box = _box(call)
    whole = box == WHOLE
    request = CaptionFrames(
        frames=frames if whole else tuple(zoom(frame, box) for frame in frames),
        box=None if whole else box,
        confidence=toolbox.confidence,
    )
    reply = await session.ask(request)
    if reply is None:
        raise InvalidReply("the model that looks gave no reply that could be read")
    notes = []
    for each in sorted(reply.captions, key=lambda each: each.frame):
        text = "; ".join(clause.text.strip() + _sure(clause.confidence, toolbox) for clause in each.clauses)
        notes.append(_note(session.environment, frames[each.frame - 1], call, text, box))
    return tuple(notes)


async def _detect(session: Session, frames: tuple[ShownFrame, ...], call: ToolCall, toolbox: Toolbox) -> Look:
    """The things in frames; one missed there is followed to it from the frames around (appendix A.2).

    Without a label everything that is known there.
    """
    environment, box = session.environment, _box(call)
    around = _around(environment, frames)
    left = session.account.frames_left
    around = around if left is None or len(around) <= left else frames
    found = await detect(session, around, (call.label or "").strip(), box)
    notes = []
    for frame in frames:
        things = sorted(_things_in(frame, found.things), key=lambda each: -each.score)[:MOST_THINGS]
        if things:
            text = _in_place(call, found) + "; ".join(_thing(each, toolbox) for each in things)
            notes.append(_note(environment, frame, call, text, box))
    return tuple(notes) or _nothing(call, found)


def _nothing(call: ToolCall, found: Found[Detected] | Found[Track]) -> str:
    """Say that nothing was found, and who looked: a detector, or likeness alone."""
    if found.source == "index":
        unlike = f"nothing found: no frame there is much like {call.label!r}"
        return f"{unlike}. Only likeness was looked at, by no detector, so it may be there all the same"
    looked = "a detector looked"
    if found.source == "library":
        looked = "the library's detections were looked through" + (f" for {found.label!r}" if found.label else "")
    return f"nothing found, no {call.label or 'thing that is known'}: {looked}"


def _in_place(call: ToolCall, found: Found[Detected] | Found[Track]) -> str:
    return f"{found.label!r} was looked for in place of {call.label!r}: " if found.loose else ""


def _box(call: ToolCall) -> Box:
    if not call.box or not call.tool.startswith("zoom"):
        return WHOLE
    x0, y0, x1, y1 = call.box
    return x0, y0, x1, y1


def _around(environment: Environment, frames: Sequence[ShownFrame]) -> tuple[ShownFrame, ...]:
    times_s = environment.times(frames[0].video_id)
    places = np.searchsorted(times_s, [frame.time_s for frame in frames])
    near = {at for place in places for at in range(max(0, place - AROUND), min(len(times_s), place + AROUND + 1))}
    return environment.frames(frames[0].video_id, times_s[sorted(near)])


def _things_in(frame: ShownFrame, found: Sequence[Detected]) -> list[Detected]:
    """Things seen in a frame, and things seen shortly before and after it, at their place in between."""
    followed: dict[tuple[str, int | None], list[Detected]] = {}
    for each in found:
        if abs(each.frame_no - frame.frame_no) <= AROUND:
            followed.setdefault((each.label, each.track_id), []).append(each)
    things = []
    for (_, track_id), sightings in followed.items():
        before = [each for each in sightings if each.frame_no < frame.frame_no]
        after = [each for each in sightings if each.frame_no > frame.frame_no]
        seen = sightings[len(before) : len(sightings) - len(after)]
        missed = not seen and before and after and track_id is not None
        things += [_between(before[-1], after[0], frame)] if missed else seen
    return things


def _between(before: Detected, after: Detected, frame: ShownFrame) -> Detected:
    """A thing on its straight way from one sighting to another, as sure as the less sure of them."""
    box = None
    if before.box and after.box:
        part = (frame.time_s - before.time_s) / (after.time_s - before.time_s)
        x0, y0, x1, y1 = (low + part * (high - low) for low, high in zip(before.box, after.box, strict=True))
        box = (x0, y0, x1, y1)
    score = min(before.score, after.score)
    return replace(before, frame_no=frame.frame_no, time_s=frame.time_s, box=box, score=score)


def _track_notes(found: Found[Track], call: ToolCall, toolbox: Toolbox) -> tuple[Note, ...]:
    """A note for each thing followed, with where it was at most `track_frames` times (appendix A.3)."""
    longest = sorted(found.things, key=lambda each: each.start_s - each.end_s)[:MOST_TRACKS]
    notes = []
    for each in sorted(longest, key=lambda each: each.start_s):
        some = each.sightings[:: math.ceil(len(each.sightings) / toolbox.track_frames)]
        text = "; ".join(f"at {sighting.time_s:.1f} s {_thing(sighting, toolbox)}" for sighting in some)
        text = _in_place(call, found) + text
        notes.append(Note(some[0].video_id, each.start_s, each.end_s, _source(call), text))
    return tuple(notes)


def _note(environment: Environment, frame: ShownFrame, call: ToolCall, text: str, box: Box) -> Note:
    where = "" if box == WHOLE else f"in {_box_text(box)}: "
    return Note(frame.video_id, *environment.shown_range(frame), _source(call), where + text)


def _source(call: ToolCall) -> str:
    return f"{call.tool} tool"


def _thing(each: Detected, toolbox: Toolbox) -> str:
    where = f"at {_box_text(each.box)}" if each.box else "somewhere, by likeness alone"
    number = "" if each.track_id is None else f" number {each.track_id}"
    return f"{each.label}{number} {where}{_sure(each.score, toolbox)}"


def _sure(confidence: float | None, toolbox: Toolbox) -> str:
    return f" (confidence {confidence:.2f})" if toolbox.confidence and confidence is not None else ""


def _box_text(box: Box) -> str:
    return f"[{', '.join(f'{side:.2f}' for side in box)}]"


# Requests of VideoAgent2 (section 3 and appendix B): assessments, plans, captions of frames.
#
# The memory bank B_t of the paper is `summaries` and `notes`: captions of consecutive parts first, then what the tools
# returned, numbered together from 1. `Assess.number` and `Toolbox.calls_left` tell the requests of one run apart.

BLANK: Mapping[str, object] = {}
Tool = Literal["caption", "detect", "zoom_caption", "zoom_detect", "track"]


def _level(value: object) -> object:
    """A confidence from 0 to 5: 4 for "4/5" or "80%"; a bare 80 is out of scale."""
    return on_scale(value, float(MOST_CONFIDENT))


def _listed(value: object) -> object:
    try:
        return parse_json(value) if isinstance(value, str) else value
    except ValueError:
        return value


class Assessment(Answered, Reasoned):
    """The answer A_t that the bank gives, and its confidence cf_t from 1 to 5; 0: the bank does not hold enough."""

    confidence: Annotated[float, Field(ge=0, le=MOST_CONFIDENT, allow_inf_nan=False), BeforeValidator(_level)] = Field(
        description="how sure you are of the answer, 0 if there is none"
    )

    _complete = read_as(lambda value: _given(value, {"option": None, "answer": None, "evidence": []}))


class ToolCall(Reply):
    """One tool and what it is to look at; `box` is x0, y0, x1, y1 as parts of a frame's width and height."""

    tool: Tool = Field(description="the tool to call")
    video: str | None = Field(description="id of the video")
    start_s: Seconds = Field(description="seconds")
    end_s: Seconds | None = Field(description="seconds, or null for one frame")
    box: Annotated[list[FiniteFloat] | None, BeforeValidator(_listed)] = Field(description="[x0, y0, x1, y1], or null")
    label: str | None = Field(description="the thing, or null")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        call = flat_call(value)
        said = (
            {key: each for key, each in call.items() if not says_nothing(each)} if isinstance(call, Mapping) else call
        )
        return _given(said, {"video": None, "end_s": None, "box": None, "label": None})


class Plan(Reasoned):
    """The steps P_t, in words, and the tool call of the first one."""

    steps: list[str] = Field(description="what to find out and how, one tool call a step")
    action: ToolCall = Field(description="the tool call of the first step")
    _accept = read_as(lambda value: _given(value))


class Action(Reasoned):
    """A tool call without a plan of its own."""

    action: ToolCall = Field(description="the tool call")
    _accept = read_as(lambda value: _given(value))


class Clause(Reply):
    """A part of a caption that can be right or wrong by itself, and how sure the model is of it, 0 to 1."""

    text: str = Field(description="what is seen")
    confidence: Confidence | None = Field(default=None, description="how sure you are of it")


class FrameCaption(Reply):
    """The caption of one of the shown frames (1 is the first)."""

    model_config = described("What one of the shown frames (1 is the first) shows.")

    frame: WholeNumber = Field(description="its number")
    clauses: list[Clause] = Field(description="short, each about one thing")


class FrameCaptions(Reply):
    """A caption for each frame."""

    captions: list[FrameCaption] = Field(description="one for each frame")
    _accept = read_alone("captions", list)


def _given(value: object, blank: Mapping[str, object] = BLANK) -> object:
    """An object's values in place of those of `blank`; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    return {**blank, **{str(key).casefold(): each for key, each in value.items() if each is not None}}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Limits of the tools: frames in one call, and in one call of "track"; and if their notes carry confidences."""

    calls_left: int
    frames: int
    track_frames: int
    confidence: bool
    labels: tuple[str, ...] = ()
    """Labels that the library's detections know, the most frequent first."""


def bank_steps(name: str, question: Question, videos: Sequence[Video]) -> Joint:
    """The replies to all requests about the bank of one question."""
    cited = {"description": "numbers of the notes that it rests on"}
    said = {"action": one_of(("answer", "insufficient_evidence")), **letters(question)}
    calls = call_bounds(videos)
    return Joint(
        name,
        {
            "assessment": bound_schema(strict_schema(Assessment), {**letters(question), "evidence": cited}),
            "plan": bound_schema(strict_schema(Plan), {"steps": {"minItems": 1}, **calls}),
            "call": bound_schema(strict_schema(Action), calls),
            "conclusion": bound_schema(strict_schema(AnswerBank.Reply), said),
        },
    )


@dataclass(frozen=True, kw_only=True)
class BankRequest(OfRun[R]):
    """A request about the bank: the first `bank` of the `notes` are its captions, the others came one by one.

    Their prompts begin alike, so that a server's prefix cache holds the bank for all requests of a run, and for other
    questions about the same videos.
    """

    summaries: tuple[Note, ...]
    notes: tuple[Note, ...]
    bank: int = 0
    joint_name: ClassVar[str]

    def joint(self) -> Joint | None:
        return bank_steps(self.joint_name, self.question, self.videos)


@dataclass(frozen=True, kw_only=True)
class AnswerBank(AnswerNotes):
    """The last word: the best answer that the bank gives."""

    template: ClassVar[str] = "videoagent2_answer"
    summaries: tuple[Note, ...]
    bank: int = 0

    def joint(self) -> Joint | None:
        """None where it has to choose: its own schema binds it to a letter."""
        return None if self.declining == "never" else bank_steps("conclusion", self.question, self.videos)


@dataclass(frozen=True, kw_only=True)
class Assess(BankRequest[Assessment]):
    """Answer from the bank and say how sure the answer is (section 3.2); without `reasoning`, straight away."""

    Reply = Assessment
    template: ClassVar[str] = "videoagent2_assess"
    joint_name: ClassVar[str] = "assessment"
    number: int
    most: int
    reasoning: bool = True
    doubt: str = ""
    """Why the answer before was not confirmed."""

    def joint(self) -> Joint | None:
        """None without `reasoning`: the joint schema would have it written down."""
        return super().joint() if self.reasoning else None

    def schema(self, *, reasoning: bool = True) -> Schema:
        schema = super().schema(reasoning=reasoning)
        return schema if self.reasoning else without_reasoning(schema)

    def bounds(self) -> Bounds:
        return {**letters(self.question), "evidence": {"description": "numbers of the notes that it rests on"}}

    def check(self, reply: Assessment) -> None:
        if reply.confidence > 0:
            check_answer(self.question, reply)


@dataclass(frozen=True, kw_only=True)
class PlanRequest(BankRequest[Plan]):
    """A plan, and the call of its first step, after an assessment that was not sure enough."""

    Reply = Plan
    joint_name: ClassVar[str] = "plan"
    doubt: str
    """What the assessment thought."""
    toolbox: Toolbox

    def bounds(self) -> Bounds:
        return {"steps": {"minItems": 1}, **call_bounds(self.videos)}

    def check(self, reply: Plan) -> None:
        if not reply.steps or not all(step.strip() for step in reply.steps):
            raise InvalidReply(
                "the plan has no step, or an empty one; say in a few words what each step is to find out"
            )
        check_call(reply.action, self.videos)


@dataclass(frozen=True, kw_only=True)
class CreatePlan(PlanRequest):
    """Plan how to find what the bank lacks, and call the first tool (section 3.3, action 1)."""

    template: ClassVar[str] = "videoagent2_create_plan"


@dataclass(frozen=True, kw_only=True)
class AdjustPlan(PlanRequest):
    """Change the `plan` by what was found and how sure that is, and call the next tool (section 3.3, action 2)."""

    template: ClassVar[str] = "videoagent2_adjust_plan"
    plan: tuple[str, ...]
    confidence: float
    """That of the answer so far, 0 to 5."""


@dataclass(frozen=True, kw_only=True)
class CallTool(BankRequest[Action]):
    """Call a tool for `step` of a plan that stays as it is; with no plan, whichever seems useful (section 4.5)."""

    Reply = Action
    template: ClassVar[str] = "videoagent2_call_tool"
    joint_name: ClassVar[str] = "call"
    plan: tuple[str, ...] = ()
    step: int = 0
    """Which of the plan, from 1."""
    toolbox: Toolbox

    def bounds(self) -> Bounds:
        return call_bounds(self.videos)

    def check(self, reply: Action) -> None:
        check_call(reply.action, self.videos)


@dataclass(frozen=True, kw_only=True)
class CaptionFrames(InParts[FrameCaptions]):
    """Say what each of `frames` shows, with a confidence for each clause (appendix A.1).

    `box` is the part of a frame that its picture shows, if it was enlarged.
    """

    Reply = FrameCaptions
    template: ClassVar[str] = "videoagent2_caption"
    role: ClassVar[str] = "vision"
    parts: ClassVar[tuple[str, str, str]] = ("frames", "captions", "frame")
    frames: tuple[ShownFrame, ...]
    box: tuple[float, float, float, float] | None = None
    confidence: bool = True

    def bounds(self) -> Bounds:
        sure = {"type": "number", "minimum": 0, "maximum": 1} if self.confidence else NULL
        return {**super().bounds(), "captions.clauses": {"minItems": 1}, "captions.clauses.confidence": sure}

    def check(self, reply: FrameCaptions) -> None:
        super().check(reply)
        clauses = [clause for each in reply.captions for clause in each.clauses]
        if not all(each.clauses for each in reply.captions) or not all(clause.text.strip() for clause in clauses):
            raise InvalidReply("a caption or a clause is empty; say what is seen")
        for clause in clauses:
            check_not_refused(clause.text)
        if self.confidence and any(clause.confidence is None for clause in clauses):
            raise InvalidReply("a clause has no confidence; give each one a number from 0 to 1")


@rule.register(CaptionFrames)
def _caption_by_rule(request: CaptionFrames, environment: Environment) -> dict[str, Any]:
    if request.box is not None:
        raise NeedsLanguage(
            "the built-in model knows whole frames, not enlarged parts; give a model that sees as the role vision"
        )
    parts = [clauses(environment, frame) for frame in request.frames]
    said = [[asdict(each) if request.confidence else {"text": each.text} for each in part] for part in parts]
    return {"captions": [{"frame": at, "clauses": each} for at, each in enumerate(said, 1)]}


def call_bounds(videos: Sequence[Video]) -> Bounds:
    """Bind a tool call to the tools that see something of these videos, and to the only video."""
    pictured = any(video.has_pictures for video in videos)
    tools = {"action.tool": one_of(get_args(Tool) if pictured else ("caption",))}
    return {**tools, "action.video": NULL} if len(videos) == 1 else tools


def check_call(call: ToolCall, videos: Sequence[Video]) -> None:
    """Raise `InvalidReply` for a call that cannot be done: of no video, outside of it, without its box or label."""
    video = named_video(videos, call.video)
    if not video.has_pictures and call.tool != "caption":
        raise InvalidReply(f"only words are known of the video, so {call.tool} has no frame to look at; call caption")
    if not video.start_s <= call.start_s < video.end_s:
        inside = f"from {video.start_s:.1f} s to {video.end_s:.1f} s"
        raise InvalidReply(f"start_s {call.start_s:g} is outside the video, which goes {inside}")
    if call.end_s is not None and call.end_s < call.start_s:
        raise InvalidReply(f"end_s {call.end_s:g} is before start_s {call.start_s:g}")
    x0, y0, x1, y1 = call.box if call.box and len(call.box) == 4 else (0, 0, 0, 0)
    if call.tool.startswith("zoom") and not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise InvalidReply(f"{call.tool} needs a box [x0, y0, x1, y1] with 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1")
    if call.tool == "track" and not (call.label or "").strip():
        raise InvalidReply("track needs a label, the thing to follow")
