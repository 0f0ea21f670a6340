"""VideoSeek (arXiv 2603.20185; supplement, A.2, A.4 and Figures 4 to 8): think, call one tool, read what it found.

`docs/papers.md` says what the supplement leaves open, what was decided, and where the published code departs from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import Declining
from kinodex.agent.builtin.descriptions import describe_each
from kinodex.agent.builtin.notes import is_relevant
from kinodex.agent.builtin.rules import rule
from kinodex.agent.environment import AnchorsFrom, Environment
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import (
    VIDEO_ID_LENGTH,
    Note,
    R,
    Reasoned,
    Reply,
    Request,
    Segment,
    ShownFrame,
    Turn,
    Video,
    after_thought,
    citation_numbers,
    described,
    read_as,
)
from kinodex.agent.replies.schema import Bounds, Schema, bound_schema, strict_schema
from kinodex.agent.replies.values import Numbers, Seconds, WholeNumber, is_blank, says_nothing
from kinodex.agent.requests.answer import Answered, AnswerNotes, Conclusion, check_answer, letters
from kinodex.agent.requests.in_parts import InParts, check_numbers
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.run_request import RunRequest
from kinodex.agent.search.chapters import show_chapters
from kinodex.agent.search.tree_search import Form
from kinodex.agent.search.video_choice import limit_videos
from kinodex.agent.session import LastWord, Session
from kinodex.agent.traces.events import Acted
from kinodex.agent.variants.base import PAPER_FORM, THOUGHT, Variant, check_at_least, for_query, no_step, span
from kinodex.index.kinds import QUOTED_KINDS, KindName

LONG_VIDEO_S = 3600.0


@dataclass(frozen=True, slots=True)
class VideoSeekParameters:
    """The supplement's alpha (A.2) for videos of up to an hour; `for_duration` gives that for longer ones."""

    alpha: int = 2
    """The scale of the tools: 16 alpha frames of all, 4 alpha of 4 alpha seconds or more, 4 alpha seconds or less."""
    subtitles: bool = True
    """The tools give the lines that are spoken in a part, too."""
    videos: int = 16
    """How many videos are offered at most."""
    rounds: int = 20
    """Steps, the last of which is the answer."""
    anchors_from: AnchorsFrom = "all"
    """By what videos are chosen from many: pictures, words (speech, text on screen, captions), or both."""
    chapters: bool = False
    """Prompts list the titles and times of the library's scenes or chapters."""
    form: Form = "ours"
    """"paper": the paper's rules where ours differ: what is quoted are subtitles, and no text on screen."""

    def __post_init__(self) -> None:
        check_at_least(self, alpha=1, videos=1, rounds=1)

    @classmethod
    def for_duration(cls, duration_s: float) -> VideoSeekParameters:
        return cls(alpha=4) if duration_s > LONG_VIDEO_S else cls()


async def videoseek(session: Session, parameters: VideoSeekParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends a step in the middle."""
    return await _Seeker(session, parameters).run()


class _Seeker:
    """The trajectory: the conversation, and the notes that the tools took."""

    def __init__(self, session: Session, parameters: VideoSeekParameters) -> None:
        limit_videos(session, [session.question.text], parameters.videos, parameters.anchors_from)
        if parameters.chapters:
            show_chapters(session, summaries=False)
        self.session, self.account = session, session.account
        self.videos = session.environment.videos
        limits = Limits(parameters.alpha)
        kinds = QUOTED_KINDS if parameters.form == "ours" else ("speech",)
        self.tools = Tools(session, limits, [kind for kind in kinds if parameters.subtitles or kind != "speech"])
        single = self.videos if len(self.videos) == 1 else ()
        lines = [line for each in single for line in self.tools.quoted(each.video_id, each.start_s, each.end_s)]
        self.notes: list[Note] = list(dict.fromkeys([*session.prior_notes, *lines]))
        self.turns: list[Turn] = []
        self.task: dict[str, Any] = {
            "question": session.question,
            "videos": self.videos,
            "known": tuple(self.notes),
            "chapters": session.chapters,
            "limits": limits,
            "steps": self.account.budget.rounds or parameters.rounds,
            "declining": session.rules.while_searching,
        }
        session.last_resort = lambda: self._last_word() if self.notes else None

    async def run(self) -> Answer:
        while True:
            step = self.account.begin_round()
            over = self.session.over()
            if over:
                return await self.session.conclude(self._last_word(), over)
            thought = await self._think(step)
            action = await self._act()
            doubt = ""
            gives_up_early = action is not None and action.declines and self.task["declining"] != "allowed"
            if action is not None and action.tool == "answer" and not gives_up_early:
                doubt = "" if action.declines else await self.session.doubt(action, self.notes)
                if not doubt:
                    return self._answer(action, thought)
            await self._observe(action, thought, doubt)

    async def _think(self, step: int) -> str:
        """The thought before a call; "" if there is none, or the model is not to write its reasons."""
        begins = STEP.format(step=step, steps=self.task["steps"])
        asked = Turn("user", begins + THINK)
        reply = await self.session.ask(Think(**self.task, turns=(*self.turns, asked)))
        if reply is None or not reply.text:
            self.turns.append(Turn("user", begins))
            return ""
        self.turns += [asked, Turn("assistant", reply.text)]
        return reply.text

    async def _act(self) -> Action | None:
        self.turns.append(Turn("user", ACT))
        action = await self.session.ask_to_search(Act(**self.task, turns=tuple(self.turns)))
        if action is not None:
            call = json.dumps({"tool": action.tool, **arguments(action)}, ensure_ascii=False)
            self.turns.append(Turn("assistant", call, action.tool))
        return action

    async def _observe(self, action: Action | None, thought: str, doubt: str) -> None:
        """Run the tool, and add its findings, or why it failed, to the trajectory."""
        found: tuple[Note, ...] = ()
        problem = "" if action else "there was no call that could be read"
        try:
            if doubt:
                raise InvalidReply(doubt)
            if action and action.declines:
                raise InvalidReply("the search goes on until the last step")
            found = await self.tools.use(action) if action else ()
        except InvalidReply as error:
            problem = str(error)
        first = len(self.notes) + 1
        self.notes += found
        result = f"Not done: {problem}." if problem else numbered(found, first, self.videos)
        self.turns.append(Turn("user", result, action.tool if action else ""))
        name, action_arguments = ("none", {}) if action is None else (action.tool, arguments(action))
        self.session.emit(Acted(self.account.rounds, name, action_arguments, thought, found, problem))

    def _answer(self, action: Action, thought: str) -> Answer:
        self.session.emit(Acted(self.account.rounds, action.tool, arguments(action), thought))
        return self.session.accept(action, self.notes, sufficient=action.sufficient)

    def _last_word(self) -> LastWord:
        declining = self.session.rules.at_the_end
        last = Turn("user", f"{LAST}{OR_NOTHING if declining == 'allowed' else ''}.")
        task = {**self.task, "declining": declining}
        return AnswerNow(**task, notes=tuple(self.notes), turns=(*self.turns, last))


def _assumed(request: Request[Any]) -> Mapping[str, Any] | str | None:
    """Overview first, then parts of the first video one after the other, looked at closely and skimmed in turn."""
    if isinstance(request, Think):
        return THOUGHT
    if not isinstance(request, Act):
        return None
    step = sum(turn.speaker == "assistant" and bool(turn.tool) for turn in request.turns)
    video, limits = request.videos[0], request.limits
    named = {"video": video.video_id if len(request.videos) > 1 else None}
    if step == 0:
        return {"tool": "overview", **named}
    is_close = step % 2 == 1
    length_s = limits.focus_most_s if is_close else max(limits.skim_least_s, video.duration_s / 2)
    start_s = video.start_s + video.duration_s * (step - 1) / request.steps
    start_s = max(video.start_s, min(start_s, video.end_s - length_s))
    part = {"start_s": start_s, "end_s": min(video.end_s, start_s + length_s)}
    return {"tool": "focus" if is_close else "skim", **named, **part, "query": THOUGHT}


VIDEOSEEK = Variant(
    "videoseek",
    "thinks, then calls one tool a step: overview, skim, focus or answer (arXiv 2603.20185)",
    videoseek,
    VideoSeekParameters.for_duration,
    roles=("policy", "vision"),
    uses=QUOTED_KINDS,
    ablations={"no subtitles": {"subtitles": False}, **PAPER_FORM},
    needs_language=True,
    needs_pictures=True,
    plain="Thinks before each step: looks over everything, skims a long stretch, or watches a short one closely.",
    words={
        "overview": lambda step: "looked over the whole video",
        "skim": lambda step: f"skimmed {span(step['arguments'])}{for_query(step)}",
        "focus": lambda step: f"watched {span(step['arguments'])} closely{for_query(step)}",
        "answer": lambda step: "",
        "none": no_step,
    },
    assumes=_assumed,
)


# The tools of VideoSeek that look at the video (supplement, A.2 and Figures 6 to 8): overview, skim and focus.

MOMENT_S = 1.0
"""Of a clip that a call gives as one time."""


class Tools:
    """The tools within their limits; each reads the lines of its range that are of some `kinds`.

    The replies of the model behind a tool become notes: of overview and skim one a frame, of focus one for all cited.
    """

    def __init__(self, session: Session, limits: Limits, kinds: Sequence[KindName]) -> None:
        self.session, self.environment, self.account = session, session.environment, session.account
        self.limits = limits
        self._kinds = tuple(kinds)

    async def use(self, action: Action) -> tuple[Note, ...]:
        """Run the tool of a call. Raises `InvalidReply` for a call that it does not take, or if it finds nothing."""
        video = self.environment.video(action.video)
        if action.tool == "overview":
            return await self._overview(video)
        part, query = self._part(video, action), (action.query or "").strip()
        return await (self._skim(part, query) if action.tool == "skim" else self._focus(part, query))

    def quoted(self, video_id: str, start_s: float, end_s: float) -> tuple[Note, ...]:
        """Quote the lines of [start_s, end_s) of a video."""
        lines = self.environment.lines(video_id, self._kinds, start_s, end_s)
        self.account.count_screen_text(lines)
        return lines

    def _part(self, video: Video, action: Action) -> Segment:
        """The range that a call names, inside its video; raises `InvalidReply` if the tool does not take it."""
        assert action.start_s is not None and action.end_s is not None, "Act.check lets no such call pass"
        least, most = self.limits.skim_least_s, self.limits.focus_most_s
        start_s, end_s = _inside(video, action.start_s, action.end_s, least if action.tool == "skim" else MOMENT_S)
        named = f"{start_s:.1f} s to {end_s:.1f} s"
        if start_s >= end_s:
            whole = f"{video.start_s:.1f} s to {video.end_s:.1f} s"
            raise InvalidReply(f"{action.start_s:.1f} s to {action.end_s:.1f} s is no part of the video, {whole}")
        length_s = round(end_s - start_s, 3)
        if action.tool == "skim" and length_s < min(least, round(video.duration_s, 3)):
            raise InvalidReply(f"{named} is too short for skim, which takes at least {least} s")
        if action.tool == "focus" and length_s > most:
            raise InvalidReply(f"{named} is too long for focus, which takes at most {most} s")
        return Segment(self.account.rounds, video.video_id, start_s, end_s)

    async def _overview(self, video: Video) -> tuple[Note, ...]:
        whole = Segment(self.account.rounds, video.video_id, video.start_s, video.end_s)
        request = OverviewVideo(**self._inputs(whole, self.limits.overview_frames))
        reply = _valid(await self.session.ask(request))
        described = sorted(reply.frames, key=lambda each: each.frame)
        return tuple(self._note("overview", request.frames, [each.frame], each.description) for each in described)

    async def _skim(self, part: Segment, query: str) -> tuple[Note, ...]:
        request = SkimRange(**self._inputs(part, self.limits.skim_frames), query=query)
        reply = _valid(await self.session.ask(request))
        notes = []
        for each in sorted(reply.frames, key=lambda each: each.frame):
            why = f"Relevant: {each.relevant}" if each.relevant and each.relevant.strip() else ""
            notes.append(self._note("skim", request.frames, [each.frame], f"{each.description} {why}"))
        return tuple(notes)

    async def _focus(self, part: Segment, query: str) -> tuple[Note, ...]:
        a_second = math.ceil(round(part.end_s - part.start_s, 3))
        request = FocusClip(**self._inputs(part, a_second), query=query)
        reply = _valid(await self.session.ask(request))
        finding = f"{query} {reply.answer}" if reply.found else f"{query} Nothing here bears on that."
        return (self._note("focus", request.frames, reply.frames if reply.found else [], finding),)

    def _inputs(self, part: Segment, count: int) -> dict[str, Any]:
        """Inputs of a request about a part: up to `count` frames, as the budget allows, and what is quoted of it."""
        left = self.account.frames_left
        count = count if left is None else min(count, left)
        return {
            "videos": (self.environment.video(part.video_id),),
            "segment": part,
            "subtitles": self.quoted(part.video_id, part.start_s, part.end_s),
            "frames": self.environment.frames_between(part.video_id, part.start_s, part.end_s, count),
        }

    def _note(self, tool: str, shown: Sequence[ShownFrame], cited: Sequence[int], text: str) -> Note:
        """A note on the frames of these numbers, on all that were shown if there are none."""
        frames = [shown[number - 1] for number in sorted(cited)] or shown
        end_s = self.environment.shown_until(frames[-1].video_id, frames[-1].time_s)
        return Note(frames[0].video_id, frames[0].time_s, end_s, tool, text)


def _inside(video: Video, start_s: float, end_s: float, least_s: float) -> tuple[float, float]:
    """A range cut to its video; what that makes too short, and a single moment, is widened back into the video."""
    low_s, high_s = max(start_s, video.start_s), min(end_s, video.end_s)
    wide_enough = end_s - start_s >= least_s and low_s < high_s
    moment = start_s == end_s and video.start_s <= start_s <= video.end_s and least_s == MOMENT_S
    if high_s - low_s < least_s and (wide_enough or moment):
        low_s = max(video.start_s, min(low_s, video.end_s - least_s))
        high_s = min(video.end_s, low_s + least_s)
    return low_s, high_s


def _valid(reply: R | None) -> R:
    if reply is None:
        raise InvalidReply("the tool gave nothing that could be read")
    return reply


# Requests of the three tools to the model that sees: overview, skim and focus (supplement, Figure 6).

SMALL_SIDE_PX = 455
"""The longer side of a 16:9 picture whose shorter one is 256, the size that overview and skim have."""
FRAME_TOKENS = 140
"""Of the 75 words about a frame that is relevant, and the JSON around them."""


class DescribedFrame(Reply):
    """The description of one frame."""

    model_config = described("What one frame shows.")

    frame: WholeNumber = Field(description="its number")
    """Its number among those shown, from 1."""
    description: str = Field(description="what it shows")


class SkimmedFrame(DescribedFrame):
    """The description of one frame, and how it bears on the query (null: it does not)."""

    model_config = described("What one frame shows, and why that bears on the query (null: it does not).")

    relevant: str | None = Field(description="what bears on what is looked for and why, else null")
    _complete = read_as(lambda value: {"relevant": None, **value} if isinstance(value, Mapping) else value)


class DescribedFrames(Reply):
    """One description for each frame."""

    frames: list[DescribedFrame] = Field(description="one for each frame")


class SkimmedFrames(Reply):
    """One description for each frame, with what bears on the query."""

    frames: list[SkimmedFrame] = Field(description="one for each frame")


class Finding(Reasoned):
    """The answer to the query that a clip gives, and the numbers of the frames that show it."""

    found: bool = Field(description="true if the clip shows it")
    answer: str = Field(description="the answer in few words, else empty")
    frames: Numbers = Field(description="numbers of the frames that show it")
    _complete = read_as(lambda value: {"answer": "", "frames": [], **value} if isinstance(value, Mapping) else value)


S = TypeVar("S", bound=DescribedFrames | SkimmedFrames)


@dataclass(frozen=True, kw_only=True)
class LookRequest(InParts[S]):
    """A description of each of some frames of a range, in small pictures; frames that are left out are asked for."""

    role: ClassVar[str] = "vision"
    parts: ClassVar[tuple[str, str, str]] = ("frames", "frames", "frame")
    image_side_px: ClassVar[int | None] = SMALL_SIDE_PX
    frame_tokens: ClassVar[int] = FRAME_TOKENS
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: S) -> None:
        super().check(reply)
        if self.frames and not any(each.description.strip() for each in reply.frames):
            raise InvalidReply("no frame is described; give one description for each")
        for each in reply.frames:
            check_not_refused(each.description)


@dataclass(frozen=True, kw_only=True)
class OverviewVideo(LookRequest[DescribedFrames]):
    """Describe each of some frames of a whole video (Figure 6a); `subtitles` are all of the video."""

    Reply = DescribedFrames
    template: ClassVar[str] = "videoseek_overview"


@dataclass(frozen=True, kw_only=True)
class SkimRange(LookRequest[SkimmedFrames]):
    """Describe each of some frames of a long range, and how it bears on `query` (Figure 6b)."""

    Reply = SkimmedFrames
    template: ClassVar[str] = "videoseek_skim"
    query: str


@dataclass(frozen=True, kw_only=True)
class FocusClip(Request[Finding]):
    """The answer to `query` from all that is stored of a short clip, in full size (Figure 6c)."""

    Reply = Finding
    template: ClassVar[str] = "videoseek_focus"
    role: ClassVar[str] = "vision"
    full_size: ClassVar[bool] = True
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    query: str
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Finding) -> None:
        if reply.found and is_blank(reply.answer):
            raise InvalidReply("the answer is empty; say what was found, or that nothing was")
        check_not_refused(reply.answer)
        if reply.frames:
            check_numbers("frame", sorted(set(reply.frames)), citation_numbers(self.frames)[0])


@rule.register(OverviewVideo)
def _overview_by_rule(request: OverviewVideo | SkimRange, environment: Environment) -> dict[str, Any]:
    texts = describe_each(environment, request.frames)
    return {"frames": [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]}


@rule.register(SkimRange)
def _skim_by_rule(request: SkimRange, environment: Environment) -> dict[str, Any]:
    described = _overview_by_rule(request, environment)["frames"]
    texts = [each["description"] for each in described]
    relevant = [text if is_relevant(request.query, text) else None for text in texts]
    return {"frames": [{**each, "relevant": why} for each, why in zip(described, relevant, strict=True)]}


@rule.register(FocusClip)
def _focus_by_rule(request: FocusClip, environment: Environment) -> dict[str, Any]:
    texts = enumerate(describe_each(environment, request.frames), 1)
    relevant = {at: text for at, text in texts if is_relevant(request.query, text)}
    answer = "; then ".join(dict.fromkeys(relevant.values()))
    return {"found": bool(relevant), "answer": answer, "frames": list(relevant)}


# Requests of the steps: a thought, a call of one tool, and one for each tool (supplement, Figures 4 to 8).

STEP = "Step {step} of {steps}."
THINK = " Think, in plain words: what do the notes show, is it enough, and if not, what next?"
ACT = (
    "Call exactly one tool now. If you have no tools that you can call, write the call as JSON only: "
    '{"tool": <its name>, <its arguments>}'
)
LAST = "The search is over, this is the last step. Call the tool answer now, with what the notes support"
OR_NOTHING = "; if they show nothing that bears on the question, the evidence is not sufficient"
BLANK: Mapping[str, object] = {
    **dict.fromkeys(("video", "start_s", "end_s", "query", "option", "answer")),
    "sufficient": True,
    "evidence": [],
}
NOTHING = (None, "", "null")
SAID = ("option", "answer")
"""Arguments in which "none" may be said in earnest: how many boats there are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the tools for one scale factor alpha (supplement, A.2)."""

    alpha: int

    @property
    def overview_frames(self) -> int:
        return 16 * self.alpha

    @property
    def skim_frames(self) -> int:
        return 4 * self.alpha

    skim_least_s = focus_most_s = skim_frames
    """One frame a second: as many seconds as frames."""


class Overview(BaseModel):
    """Look at the whole video coarsely: frames spread over all of it, each described. For a first impression."""

    tool: Literal["overview"]
    video: str | None


class Skim(BaseModel):
    """Scan a long range of the video for what the query names. To find the moments that matter."""

    tool: Literal["skim"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Focus(BaseModel):
    """Inspect a short clip, frame by frame and in full size, to answer the query. To verify details."""

    tool: Literal["focus"]
    video: str | None
    start_s: Seconds
    end_s: Seconds
    query: str


class Finish(BaseModel):
    """Give the final answer and the numbers of the notes it rests on, or say that the evidence is not sufficient."""

    tool: Literal["answer"]
    sufficient: bool
    option: str | None
    answer: str | None
    evidence: Numbers


TOOLS = (Overview, Skim, Focus, Finish)
"""Offered with every request of the conversation, also where none or only `answer` is to be called."""


class Thought(Reply):
    """The reasoning of the agent before it acts, in its own words."""

    model_config = described("What the agent thinks before it acts, in its own words.")

    text: str

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(text=after_thought(text))


class _Call(Reply):
    tool: Literal["overview", "skim", "focus", "answer"]
    video: str | None
    start_s: Seconds | None
    end_s: Seconds | None
    query: str | None
    sufficient: bool
    """True if the evidence suffices for the answer."""


class Action(Answered, _Call):
    """A call of one of the four tools; what the tool does not take is null."""

    @property
    def declines(self) -> bool:
        return self.tool == "answer" and not self.sufficient

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = {name: each for name, each in value.items() if each not in NOTHING}
        return {**BLANK, **{name: each for name, each in given.items() if name in SAID or not says_nothing(each)}}


class FinalAnswer(Conclusion):
    """The call of the tool answer, when no other is left."""

    @model_validator(mode="before")
    @classmethod
    def _read_call(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        if value.get("tool", "answer") != "answer":
            raise ValueError("the search is over; call answer")
        sufficient = value.get("sufficient")
        enough = says_nothing(sufficient) or TypeAdapter(bool).validate_python(sufficient)
        return value if enough else {**value, "action": "insufficient_evidence"}


@dataclass(frozen=True, kw_only=True)
class SeekRequest(RunRequest[R]):
    """A request of the conversation, whose `turns` are the steps so far.

    `known` is what is known at the beginning: the subtitles of the whole video (none if there are several videos).
    """

    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    temperature: ClassVar[float] = 1.0
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...] = ()
    declining: Declining = "allowed"


@dataclass(frozen=True, kw_only=True)
class Think(SeekRequest[Thought]):
    """Think about the notes: is it enough, and if not, what next."""

    Reply = Thought
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "text"
    tool_choice: ClassVar[str] = "none"
    any_text: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class AnswerNow(AnswerNotes):
    """The same conversation, ended by the answer; `notes` are all that were taken, and `evidence` counts them."""

    Reply = FinalAnswer
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = TOOLS
    tool_choice: ClassVar[str] = "answer"
    temperature: ClassVar[float] = 1.0
    known: tuple[Note, ...]
    limits: Limits
    steps: int
    turns: tuple[Turn, ...]

    def schema(self, *, reasoning: bool = True) -> Schema:
        sufficient = {} if self.declining == "allowed" else {"sufficient": {"type": "boolean", "enum": [True]}}
        return bound_schema(strict_schema(Finish), {**letters(self.question), **sufficient})


@dataclass(frozen=True, kw_only=True)
class Act(SeekRequest[Action]):
    """The call of a tool that carries out the thought at the end of `turns`.

    A range that the tool does not take is no invalid reply: the tool itself says so.
    """

    Reply = Action
    template: ClassVar[str] = "videoseek"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"

    @property
    def instead(self) -> str:
        return "call overview, skim or focus, or answer with what the notes support best"

    def bounds(self) -> Bounds:
        return letters(self.question)

    def check(self, reply: Action) -> None:
        if reply.tool == "answer" and reply.sufficient:
            check_answer(self.question, reply)
        if reply.tool in ("skim", "focus"):
            if reply.start_s is None or reply.end_s is None:
                raise InvalidReply(f"{reply.tool} needs start_s and end_s, in seconds")
            if not (reply.query or "").strip():
                raise InvalidReply(f"{reply.tool} needs a query; say what to look for")


def arguments(action: Action) -> dict[str, object]:
    [tool] = [each for each in Act.tools if get_args(each.model_fields["tool"].annotation) == (action.tool,)]
    return {name: getattr(action, name) for name in tool.model_fields if name != "tool"}


def numbered(notes: Sequence[Note], first: int, videos: Sequence[Video]) -> str:
    """Notes as the prompts show them, one a line, with their numbers from `first`."""

    def line(number: int, note: Note) -> str:
        where = f" of video {note.video_id[:VIDEO_ID_LENGTH]}" if len(videos) > 1 else ""
        return f"{number}. {note.start_s:.1f} s to {note.end_s:.1f} s{where} ({note.quoted}): {note.text}"

    return "\n".join(line(number, note) for number, note in enumerate(notes, start=first))
