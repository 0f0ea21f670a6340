"""A model without a language model: it answers typed requests from the library's own frame embeddings.

It turns a question into statements (`statements`) and compares them with the frames that a request shows, in the
library's space (`builtin.seeing`), or with the words of notes (`builtin.reading`); of libraries in the built-in space
it can also say what frames show (`builtin.telling`). A weak but real baseline: perception is the space's, and the
reasoning is a few rules. It looks at no frame that was not shown to it. What needs language (plans, thoughts, tool
calls, summaries, guesses) it refuses, rather than play it badly.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Any

from agent.core.protocol import Exchange, R, Request, ShownFrame
from agent.core.question import Note, Question, ScoredSegment
from agent.environment import Environment, calibrate
from agent.errors import NeedsLanguage
from agent.models.rulebased import judge_frames as seeing
from agent.models.rulebased import judge_notes as reading
from agent.models.rulebased.describe_replies import told
from agent.models.rulebased.statements import statements
from agent.models.rulebased.verdict import Verdict, concluded
from agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from agent.requests.describe import DescribeSegment
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.variants.longvideoagent.requests import LocateClips, ReadFrames
from agent.variants.vca.requests import ChooseFrames
from agent.variants.videoagent.requests import FindMissing, ReflectOnAnswer
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.requests import FocusClip, OverviewVideo, SkimRange
from agent.variants.videotree.requests import JudgeRelevance

QUERIES = 5


class RuleBasedModel:
    """Answers from the environment's vectors; its replies cost no tokens.

    Raises `NeedsLanguage` for what it cannot answer.
    """

    name = "builtin"
    has_language = False

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    async def ask(self, request: Request[R]) -> Exchange[R]:
        started = time.perf_counter()
        reply = request.Reply.model_validate(self._reply(request))
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)

    def _reply(self, request: Request[Any]) -> dict[str, Any]:
        match request:
            case DiscoverQueries(question=question):
                return {"queries": statements(question).queries[:QUERIES] or (question.text,)}
            case ProposeQueries():
                return _propose(request)
            case ScoreSegments():
                return {"segments": self._score(request)}
            case Decide():
                return self._decide(request)
            case ChooseFrames():
                return self._choose(request)
            case AnswerFrames(question=question, frames=frames, notes=()):
                return self._seen(question, frames)
            case AnswerFrames():
                return self._seen_or_told(request)
            case DescribeSegment() | ReadFrames() | CaptionFrames() | OverviewVideo() | SkimRange() | FocusClip():
                return told(self.environment, request)
            case Recall():
                return self._recall(request)
            case AnswerNotes(question=question, notes=notes):
                return _read(question, notes)
            case ReflectOnAnswer(question=question, notes=notes):
                verdict = reading.judge(question, notes)
                return {"confidence": 3 if reading.settled(verdict) else 2 if verdict.choice is not None else 1}
            case FindMissing():
                return {"frames": _missing(request)}
            case JudgeRelevance(question=question, notes=notes):
                levels = reading.relevances(question, notes)
                return {"clusters": [{"cluster": at + 1, "relevance": level} for at, level in enumerate(levels)]}
            case LocateClips():
                return {"clips": reading.located(request), "reason": ""}
        raise NeedsLanguage(
            f"the built-in model compares pictures with words and has no language for {type(request).__name__}; "
            "this agent needs a language model; give --model and --base-url"
        )

    def _score(self, request: ScoreSegments) -> list[dict[str, Any]]:
        """How well the frames at each segment's borders match the statement that they match best."""
        wanted = statements(request.question).queries or (request.question.text,)
        matches = seeing.matches(self.environment, wanted, request.frames)
        scores: list[dict[str, Any]] = []
        for part in request.segments:
            beside = [
                at
                for at, frame in enumerate(request.frames)
                if frame.video_id == part.video_id and frame.time_s in (part.start_s, part.end_s)
            ]
            at, text = max(
                ((at, text) for at in beside for text in range(len(wanted))), key=lambda pair: float(matches[pair])
            )
            score = round(100 * float(calibrate(matches[at, text])))
            explanation = f"{wanted[text]!r}, perhaps" if score else ""
            scores.append({"segment": part.number, "score": score, "explanation": explanation})
        return scores

    def _decide(self, request: Decide) -> dict[str, Any]:
        verdict = seeing.judge(self.environment, request.question, request.frames)
        open_ones = [each for each in request.candidates if each.explorable]
        if seeing.settled(verdict) or request.must_answer or not open_ones:
            return concluded(request.question, verdict, [frame.time_s for frame in request.frames])
        return {"action": "explore", "segment": self._next(request.question, open_ones, request.frames)}

    def _next(self, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]) -> int:
        """The segment with the highest score, or the one beside the moment that the question speaks of."""
        asked = statements(question)
        moment = seeing.moment(self.environment, asked, frames)
        if moment is not None:
            for each in open_ones:
                border_s = each.segment.start_s if asked.order == "after" else each.segment.end_s
                if each.segment.video_id == moment.video_id and border_s == moment.time_s and not each.divided:
                    return each.segment.number
        # Both sides of an anchor have its score: the longer one has more to show. A part has its parent's frames too.
        return max(
            open_ones,
            key=lambda each: (each.score or 0.0, not each.divided, each.segment.end_s - each.segment.start_s),
        ).segment.number

    def _choose(self, request: ChooseFrames) -> dict[str, Any]:
        """An answer if the frames settle the question, else the middles of the longest stretches not seen yet."""
        verdict = seeing.judge(self.environment, request.question, request.frames)
        if seeing.settled(verdict):
            return concluded(request.question, verdict, [frame.time_s for frame in request.frames])
        video = min(request.videos, key=lambda each: sum(video_id == each.video_id for video_id, _ in request.seen))
        times_s = sorted([video.start_s, *(at_s for video_id, at_s in request.seen if video_id == video.video_id)])
        gaps_s = sorted(pairwise([*times_s, video.end_s]), key=lambda gap: gap[0] - gap[1])
        middles_s = [(start_s + end_s) / 2 for start_s, end_s in gaps_s[: request.count]]
        return {"action": "look", "video": video.video_id, "times_s": middles_s}

    def _seen(self, question: Question, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        return concluded(question, seeing.judge(self.environment, question, frames), [each.time_s for each in frames])

    def _seen_or_told(self, request: AnswerFrames) -> dict[str, Any]:
        """What the frames, else the notes, show clearly; else what the frames show."""
        clear = self._recall(request)
        return clear if clear["action"] == "answer" else self._seen(request.question, request.frames)

    def _recall(self, request: Recall | AnswerFrames) -> dict[str, Any]:
        """What the frames, else the notes, show clearly: of a follow-up question, those of the questions before."""
        seen = seeing.judge(self.environment, request.question, request.frames)
        if seeing.settled(seen):
            return concluded(request.question, seen, [each.time_s for each in request.frames])
        told = reading.judge(request.question, request.notes)
        if not reading.settled(told):
            return concluded(request.question, Verdict(), ())
        reply = concluded(request.question, told, [each.start_s for each in request.notes])
        return reply | {"evidence": [len(request.frames) + number for number in told.evidence]}


def _read(question: Question, notes: Sequence[Note]) -> dict[str, Any]:
    return concluded(question, reading.judge(question, notes), [note.start_s for note in notes])


def _propose(request: ProposeQueries) -> dict[str, Any]:
    """Statements that discovery left out; it has no words for anything else that a frame shows."""
    known = {query.casefold() for query in request.known}
    asked = statements(request.question)
    return {"queries": [text for text in (*asked.queries, *asked.options) if text not in known][:QUERIES]}


def _missing(request: FindMissing) -> list[dict[str, Any]]:
    """The statements in turn, each in another of the longest segments; or all beside the moment asked about."""
    asked = statements(request.question)
    texts = asked.queries or (request.question.text,)
    segments = sorted(request.segments, key=lambda each: each.start_s - each.end_s)
    then = reading.moments(asked.moment, request.notes) if asked.moment else []
    beside = [
        segment
        for segment in segments
        for note in then
        if note.start_s == (segment.start_s if asked.order == "after" else segment.end_s)
        and note.video_id == segment.video_id
    ]
    if beside:
        texts = asked.options or texts
        segments = beside[:1] * len(texts)
    return [
        {"segment": segment.number, "description": text}
        for segment, text in zip(segments[: request.most], cycle(texts), strict=False)
    ]
