"""VideoAgent, rounds of answering and looking for what is missing (ECCV 2024, arXiv 2403.10517): Algorithm 1.

Frames are captioned one by one, when they are chosen, by the role "captioner"; all that was captioned is the state s_t,
in the order of time. `docs/papers.md` says what the paper leaves open, what was decided, and where the published code
departs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.answer import Answer
from kinodex.agent.attempts import ATTEMPTS
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.answer import AnswerNotes, Conclusion, chosen_option
from kinodex.agent.search.video_choice import choose_videos
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import FrameTime, caption_frames, in_order
from kinodex.agent.tools.uniform import uniform_times
from kinodex.agent.traces.events import Acted, Assessed
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.agent.variants.videoagent.requests import SURE, FindMissing, ReflectOnAnswer
from kinodex.agent.variants.words import Step, counted_frames, quoted
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.index.kinds import LINE_KINDS

SHORT_VIDEO_S = 300.0


@dataclass(frozen=True, slots=True)
class VideoAgentParameters:
    """The settings for long videos; `for_duration` gives those for short ones."""

    first_frames: int = 15
    """Frames, equally spaced, that are described at first."""
    retrieved: int = 5
    """Frames looked for in a round at most."""
    sure: int = SURE
    """The confidence, 1 to 3, that ends the search: C."""
    segment_selection: bool = True
    """New frames are looked for in segments that the model names; else in the whole video."""
    self_evaluation: bool = True
    """The model says how sure it is, and may end early; else all rounds are done."""
    videos: int = 16
    """How many videos are searched at most."""
    rounds: int = 3
    """Times that it is asked at most."""
    anchors_from: AnchorsFrom = "all"
    """Where descriptions find frames: in pictures, in words (speech, text on screen, captions), or in both."""

    def __post_init__(self) -> None:
        check_at_least(self, first_frames=1, retrieved=1, sure=1, videos=1, rounds=1)

    @classmethod
    def for_duration(cls, duration_s: float) -> VideoAgentParameters:
        return cls(first_frames=5) if duration_s < SHORT_VIDEO_S else cls()


async def videoagent(session: Session, parameters: VideoAgentParameters) -> Answer:
    """Answer by Algorithm 1. Raises `OutOfBudget` when a budget ends the search in the middle of a round."""
    return await _Rounds(session, parameters).run()


class _Rounds:
    """The state of Algorithm 1: frames looked at, and the notes s_t that were taken of them."""

    def __init__(self, session: Session, parameters: VideoAgentParameters) -> None:
        self.session, self.parameters = session, parameters
        self.seen: set[FrameTime] = set()
        self.notes = in_order(session.prior_notes)
        session.last_resort = lambda: self._answering() if self.notes else None

    async def run(self) -> Answer:
        frames = await self._first_frames()
        while True:  # line 2
            self.session.account.begin_round()
            await self._read(frames)  # lines 1 and 10
            over = self.session.over()
            if over:
                return await self.session.conclude(self._answering(), over)
            predicted, doubt = None, ""
            if self.parameters.self_evaluation:
                request = replace(self._answering(), declining=self.session.rules.at_the_end)
                predicted = await self.session.ask(request)  # line 3
                if predicted and predicted.action == "answer":
                    self.session.tentative = predicted, self.notes
                if predicted and await self._confidence(predicted) >= self.parameters.sure:  # lines 4 to 6
                    doubt = await self.session.doubt(predicted, self.notes) if predicted.action == "answer" else ""
                    if not doubt:
                        return self._answer(predicted)
            found = await self._retrieve(doubt)  # lines 8 and 9
            frames = found or []
            if found is not None and not found:
                if predicted:
                    return self._answer(predicted)
                # A further attempt: a cache would answer the same request with the replies that were invalid.
                return await self.session.conclude(replace(self._answering(), attempt=ATTEMPTS))

    async def _first_frames(self) -> list[FrameTime]:
        """Equally spaced frames, and those that earlier answers of a conversation rest on."""
        await choose_videos(self.session, self.parameters.videos, self.parameters.anchors_from)
        spaced = uniform_times(self.session.environment, self.parameters.first_frames)
        known = [(frame.video_id, frame.time_s) for frame in self.session.prior_frames]
        return [(video_id, time_s) for video_id, times_s in spaced.items() for time_s in times_s] + known

    async def _read(self, frames: Iterable[FrameTime]) -> None:
        """Caption frames and merge the captions with what is known."""
        new = set(frames) - self.seen
        self.seen |= new
        captions = await caption_frames(self.session, new)
        self.notes = in_order([*self.notes, *captions.values()])
        rounds = self.session.account.rounds
        self.session.emit(Acted(rounds, "caption", {"frames": len(new)}, notes=in_order(captions.values())))

    async def _confidence(self, predicted: Conclusion) -> int:
        """Rate the confidence (SelfReflect), 1 to 3; the lowest without an answer or a valid reflection."""
        if predicted.action != "answer":
            return 1
        question = self.session.question
        option = chosen_option(question, predicted)
        reflection = await self.session.ask(
            ReflectOnAnswer(
                question=question,
                videos=self.session.environment.videos,
                notes=self.notes,
                answer=predicted.answer or "" if option is None else ". ".join(question.lettered[option]),
            )
        )
        if reflection is None:
            return 1
        self.session.emit(Assessed(self.session.account.rounds, reflection.confidence, SURE, reflection.reasoning))
        return reflection.confidence

    async def _retrieve(self, doubt: str) -> list[FrameTime] | None:
        """Find the unseen frames of segments that descriptions match best (FindMissingInfo and RetrieveFrames).

        `doubt` is the reason of the gate, if it opened the search again.
        None if there was no valid description in two attempts, which does not say that nothing is left to look for.
        """
        segments = {segment.number: segment for segment in self._segments()}
        if not segments:
            return []
        missing = await self.session.ask(
            FindMissing(
                question=self.session.question,
                videos=self.session.environment.videos,
                notes=self.notes,
                segments=tuple(segments.values()),
                most=self.parameters.retrieved,
                doubt=doubt,
            )
        )
        if missing is None:
            return None
        found: list[FrameTime] = []
        wanted = missing.frames[: self.parameters.retrieved]
        for each in wanted:
            found += self._best(segments[each.segment], each.description, found)
        looked_for = [f"segment {each.segment}: {each.description}" for each in wanted]
        self.session.emit(Acted(self.session.account.rounds, "retrieve", {"frames": looked_for}))
        return found

    def _best(self, segment: Segment, description: str, found: list[FrameTime]) -> list[FrameTime]:
        unseen = self._unseen(segment, found)
        if not len(unseen):
            return []
        environment = self.session.environment
        kind = self.parameters.anchors_from
        matches = np.maximum(*environment.matches([description], segment.video_id, (), kind))[unseen, 0]
        best = unseen[len(unseen) // 2]
        if np.isneginf(matches).all() and environment.has_vectors:  # no words there match
            matches = environment.cosines(description, segment.video_id)[unseen]
        if not np.isneginf(matches).all():
            best = unseen[int(np.argmax(matches))]
        return [(segment.video_id, float(environment.times(segment.video_id)[best]))]

    def _segments(self) -> list[Segment]:
        """Return the parts of the videos between the frames seen so far that have unseen ones, numbered from 1."""
        parts: list[Segment] = []
        for video in self.session.environment.videos:
            cuts_s = {time_s for video_id, time_s in self.seen if video_id == video.video_id}
            inside_s = sorted(cuts_s) if self.parameters.segment_selection else []
            for start_s, end_s in pairwise([video.start_s, *inside_s, video.end_s]):
                part = Segment(len(parts) + 1, video.video_id, start_s, end_s)
                parts += [part] if len(self._unseen(part, ())) else []
        return parts

    def _unseen(self, segment: Segment, found: Iterable[FrameTime]) -> NDArray[np.intp]:
        times_s = self.session.environment.times(segment.video_id)
        known_s = [time_s for video_id, time_s in (*self.seen, *found) if video_id == segment.video_id]
        inside = (times_s >= segment.start_s) & (times_s < segment.end_s) & ~np.isin(times_s, known_s)
        return np.flatnonzero(inside)

    def _answering(self) -> AnswerNotes:
        session = self.session
        return AnswerNotes(question=session.question, videos=session.environment.videos, notes=self.notes)

    def _answer(self, predicted: Conclusion) -> Answer:
        return self.session.accept(predicted, self.notes, sufficient=predicted.action == "answer")


def _looked_for(step: Step) -> str:
    texts = [each.partition(": ")[2] or each for each in step["arguments"]["frames"]]
    return f"went to look for {quoted(texts)}" if texts else "found nothing more to look for"


def _assumed(request: Request[Any]) -> Mapping[str, Any] | None:
    """As many frames are missing as may be looked for, each in a segment of its own."""
    if not isinstance(request, FindMissing):
        return None
    [frame] = request.example()["frames"]
    return {**request.example(), "frames": [{**frame, "segment": it.number} for it in request.segments[: request.most]]}


VIDEOAGENT = Variant(
    "videoagent",
    "baseline: captions of a few frames, and of more that a description finds, until it is sure (arXiv 2403.10517)",
    videoagent,
    VideoAgentParameters.for_duration,
    roles=("policy", "captioner"),
    chooses=True,
    needs_language=True,
    uses=LINE_KINDS,
    ablations={
        "no segment selection": {"segment_selection": False},
        "no self-evaluation": {"self_evaluation": False},
    },
    plain="Puts a few pictures into words, and more where something is missing.",
    words={"caption": lambda step: f"put {counted_frames(step)} into words", "retrieve": _looked_for},
    assumes=_assumed,
)
