"""VideoSeek (arXiv 2603.20185; supplement, A.2, A.4 and Figures 4 to 8): think, call one tool, read what it found.

A step is one request: the instruction of Figure 5 on the user's side, and a reply with the thought and the call. The
supplement leaves open, and here is decided:

- alpha follows a benchmark (A.2): it is 4 for a video of more than an hour, as LVBench's are, else 2.
- The steps have no number: 20, as in the published code. The last one can only be the answer, although the rules
  forbid to choose the best of several options: one is chosen, unless `AnswerRules` let the evidence be insufficient.
- A call that breaks a tool's limits, or that cannot be read twice, costs the step.
- Of several videos a call names one; of one video whatever it names is that one.

`docs/papers.md` has the places in the supplement, and says where the published code departs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request, Turn
from kinodex.agent.replies.schema import REASONING
from kinodex.agent.search.video_choice import limit_videos
from kinodex.agent.session import LastWord, Session
from kinodex.agent.traces.events import Acted
from kinodex.agent.variants.base import THOUGHT, Variant, check_at_least
from kinodex.agent.variants.videoseek.step_requests import (
    LAST,
    OR_NOTHING,
    STEP,
    Act,
    Action,
    AnswerNow,
    Limits,
    arguments,
    numbered,
)
from kinodex.agent.variants.videoseek.tools import Tools
from kinodex.agent.variants.words import for_query, no_step, span

LONG_VIDEO_S = 3600.0


@dataclass(frozen=True, slots=True)
class VideoSeekParameters:
    """The supplement's alpha (A.2) for videos of up to an hour; `for_duration` gives that for longer ones."""

    alpha: int = 2
    """The scale of the tools: 16 alpha frames of all, 4 alpha of 4 alpha seconds or more, 4 alpha seconds or less."""
    subtitles: bool = True
    """The thinker reads the lines that are spoken, and the tools those of a part."""
    videos: int = 16
    """How many videos are offered at most."""
    rounds: int = 20
    """Steps, the last of which is the answer."""

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
        limit_videos(session, [session.question.text], parameters.videos)
        self.session, self.account = session, session.account
        self.videos = session.environment.videos
        limits = Limits(parameters.alpha)
        self.tools = Tools(session, limits, subtitles=parameters.subtitles)
        single = self.videos if len(self.videos) == 1 else ()
        lines = [line for each in single for line in self.tools.said(each.video_id, each.start_s, each.end_s)]
        self.notes: list[Note] = list(dict.fromkeys([*session.prior_notes, *lines]))
        self.turns: list[Turn] = []
        self.task: dict[str, Any] = {
            "question": session.question,
            "videos": self.videos,
            "known": tuple(self.notes),
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
            action = await self._act(step)
            doubt = ""
            gives_up_early = action is not None and action.declines and self.task["declining"] != "allowed"
            if action is not None and action.tool == "answer" and not gives_up_early:
                doubt = "" if action.declines else await self.session.doubt(action, self.notes)
                if not doubt:
                    return self._answer(action)
            await self._observe(action, doubt)

    async def _act(self, step: int) -> Action | None:
        """Return the thought and the call of a step; None if there was none that could be read."""
        self.turns.append(Turn("user", STEP.format(step=step, steps=self.task["steps"])))
        action = await self.session.ask_to_search(Act(**self.task, turns=tuple(self.turns)))
        if action is not None:
            thought = {REASONING: action.reasoning} if action.reasoning else {}
            call = {"tool": action.tool, **thought, **arguments(action)}
            self.turns.append(Turn("assistant", json.dumps(call, ensure_ascii=False), action.tool))
        return action

    async def _observe(self, action: Action | None, doubt: str) -> None:
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
        thought = action.reasoning if action else ""
        self.session.emit(Acted(self.account.rounds, name, action_arguments, thought, found, problem))

    def _answer(self, action: Action) -> Answer:
        self.session.emit(Acted(self.account.rounds, action.tool, arguments(action), action.reasoning))
        return self.session.accept(action, self.notes, sufficient=action.sufficient)

    def _last_word(self) -> LastWord:
        declining = self.session.rules.at_the_end
        last = Turn("user", f"{LAST}{OR_NOTHING if declining == 'allowed' else ''}.")
        task = {**self.task, "declining": declining}
        return AnswerNow(**task, notes=tuple(self.notes), turns=(*self.turns, last))


def _assumed(request: Request[Any]) -> Mapping[str, Any] | str | None:
    """Overview first, then parts of the first video one after the other, looked at closely and skimmed in turn."""
    if not isinstance(request, Act):
        return None
    step = sum(turn.speaker == "assistant" and bool(turn.tool) for turn in request.turns)
    video, limits = request.videos[0], request.limits
    named = {"video": video.video_id if len(request.videos) > 1 else None}
    if step == 0:
        return {"tool": "overview", "reasoning": THOUGHT, **named}
    is_close = step % 2 == 1
    length_s = limits.focus_most_s if is_close else max(limits.skim_least_s, video.duration_s / 2)
    start_s = video.start_s + video.duration_s * (step - 1) / request.steps
    start_s = max(video.start_s, min(start_s, video.end_s - length_s))
    part = {"start_s": start_s, "end_s": min(video.end_s, start_s + length_s)}
    return {"tool": "focus" if is_close else "skim", "reasoning": THOUGHT, **named, **part, "query": THOUGHT}


VIDEOSEEK = Variant(
    "videoseek",
    "thinks, then calls one tool a step: overview, skim, focus or answer (arXiv 2603.20185)",
    videoseek,
    VideoSeekParameters.for_duration,
    roles=("policy", "vision"),
    chooses=True,
    uses=("speech",),
    ablations={"no subtitles": {"subtitles": False}},
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
