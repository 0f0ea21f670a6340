"""The built-in model: a few rules that answer typed requests from the library's own frame embeddings.

It turns a question into statements (`statements`) and compares them with the frames that a request shows, in the
library's space (`judge_frames`), or with the words of notes (`judge_notes`); in libraries in the built-in space it can
also describe frames (`describe_frames`). A weak but real baseline: perception is the space's, and the reasoning is a
few rules. It sees no frame that was not shown to it. It refuses what needs language (plans, thoughts, tool calls,
summaries, guesses), and does not imitate it badly.
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
from agent.models.rulebased import judge_frames, judge_notes
from agent.models.rulebased.describe_frames import describe_reply
from agent.models.rulebased.statements import cloze_statements
from agent.models.rulebased.verdict import Verdict, to_reply
from agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from agent.requests.describe import DescribeSegment
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.variants.longvideoagent.requests import LocateClips, ReadFrames
from agent.variants.vca.requests import ChooseFrames
from agent.variants.videoagent.requests import FindMissing, ReflectOnAnswer
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.requests import FocusClip, OverviewVideo, SkimRange
from agent.variants.videotree.requests import JudgeRelevance

MAX_QUERIES = 5


class RuleBasedModel:
    """A model that answers from the environment's vectors; its replies cost no tokens.

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
                return {"queries": cloze_statements(question).queries[:MAX_QUERIES] or (question.text,)}
            case ProposeQueries():
                return _propose(request)
            case ScoreSegments():
                return {"segments": self._score(request)}
            case Decide():
                return self._decide(request)
            case ChooseFrames():
                return self._choose(request)
            case AnswerFrames(question=question, frames=frames, notes=()):
                return self._answer_frames(question, frames)
            case AnswerFrames():
                return self._answer_frames_or_notes(request)
            case DescribeSegment() | ReadFrames() | CaptionFrames() | OverviewVideo() | SkimRange() | FocusClip():
                return describe_reply(self.environment, request)
            case Recall():
                return self._recall(request)
            case AnswerNotes(question=question, notes=notes):
                return _answer_notes(question, notes)
            case ReflectOnAnswer(question=question, notes=notes):
                verdict = judge_notes.judge(question, notes)
                return {"confidence": 3 if judge_notes.is_settled(verdict) else 2 if verdict.choice is not None else 1}
            case FindMissing():
                return {"frames": _find_missing(request)}
            case JudgeRelevance(question=question, notes=notes):
                levels = judge_notes.relevances(question, notes)
                return {"clusters": [{"cluster": at + 1, "relevance": level} for at, level in enumerate(levels)]}
            case LocateClips():
                return {"clips": judge_notes.locate_clip(request), "reason": ""}
        raise NeedsLanguage(
            f"the built-in model compares pictures with words and has no language for {type(request).__name__}; "
            "this agent needs a language model; give --model and --base-url"
        )

    def _score(self, request: ScoreSegments) -> list[dict[str, Any]]:
        """Score each segment by the best match of a statement with the frames at its borders."""
        queries = cloze_statements(request.question).queries or (request.question.text,)
        matches = judge_frames.matches(self.environment, queries, request.frames)
        scores: list[dict[str, Any]] = []
        for part in request.segments:
            beside = [
                at
                for at, frame in enumerate(request.frames)
                if frame.video_id == part.video_id and frame.time_s in (part.start_s, part.end_s)
            ]
            at, text = max(
                ((at, text) for at in beside for text in range(len(queries))), key=lambda pair: float(matches[pair])
            )
            score = round(100 * float(calibrate(matches[at, text])))
            explanation = f"{queries[text]!r}, perhaps" if score else ""
            scores.append({"segment": part.number, "score": score, "explanation": explanation})
        return scores

    def _decide(self, request: Decide) -> dict[str, Any]:
        verdict = judge_frames.judge(self.environment, request.question, request.frames)
        open_ones = [each for each in request.candidates if each.explorable]
        if judge_frames.is_settled(verdict) or request.must_answer or not open_ones:
            return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
        return {"action": "explore", "segment": self._next_segment(request.question, open_ones, request.frames)}

    def _next_segment(
        self, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]
    ) -> int:
        """The segment with the highest score, or the one beside the moment that the question names."""
        statements = cloze_statements(question)
        moment = judge_frames.find_moment(self.environment, statements, frames)
        if moment is not None:
            for each in open_ones:
                border_s = each.segment.start_s if statements.order == "after" else each.segment.end_s
                if each.segment.video_id == moment.video_id and border_s == moment.time_s and not each.divided:
                    return each.segment.number
        # Both sides of an anchor have its score: the longer one has more to show. A part has its parent's frames too.
        return max(
            open_ones,
            key=lambda each: (each.score or 0.0, not each.divided, each.segment.end_s - each.segment.start_s),
        ).segment.number

    def _choose(self, request: ChooseFrames) -> dict[str, Any]:
        """Answer if the frames settle the question, else ask for the middles of the longest unseen stretches."""
        verdict = judge_frames.judge(self.environment, request.question, request.frames)
        if judge_frames.is_settled(verdict):
            return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
        video = min(request.videos, key=lambda each: sum(video_id == each.video_id for video_id, _ in request.seen))
        times_s = sorted([video.start_s, *(at_s for video_id, at_s in request.seen if video_id == video.video_id)])
        gaps_s = sorted(pairwise([*times_s, video.end_s]), key=lambda gap: gap[0] - gap[1])
        middles_s = [(start_s + end_s) / 2 for start_s, end_s in gaps_s[: request.count]]
        return {"action": "look", "video": video.video_id, "times_s": middles_s}

    def _answer_frames(self, question: Question, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        return to_reply(
            question, judge_frames.judge(self.environment, question, frames), [each.time_s for each in frames]
        )

    def _answer_frames_or_notes(self, request: AnswerFrames) -> dict[str, Any]:
        """Answer what the frames, else the notes, show clearly; else what the frames show best."""
        clear = self._recall(request)
        return clear if clear["action"] == "answer" else self._answer_frames(request.question, request.frames)

    def _recall(self, request: Recall | AnswerFrames) -> dict[str, Any]:
        """Answer what the frames, else the notes, show clearly; for a follow-up, those of earlier questions."""
        verdict = judge_frames.judge(self.environment, request.question, request.frames)
        if judge_frames.is_settled(verdict):
            return to_reply(request.question, verdict, [each.time_s for each in request.frames])
        verdict = judge_notes.judge(request.question, request.notes)
        if not judge_notes.is_settled(verdict):
            return to_reply(request.question, Verdict(), ())
        reply = to_reply(request.question, verdict, [each.start_s for each in request.notes])
        return reply | {"evidence": [len(request.frames) + number for number in verdict.evidence]}


def _answer_notes(question: Question, notes: Sequence[Note]) -> dict[str, Any]:
    return to_reply(question, judge_notes.judge(question, notes), [note.start_s for note in notes])


def _propose(request: ProposeQueries) -> dict[str, Any]:
    """Propose statements that discovery left out: there are no words for anything else in a frame."""
    known = {query.casefold() for query in request.known}
    statements = cloze_statements(request.question)
    return {"queries": [text for text in (*statements.queries, *statements.options) if text not in known][:MAX_QUERIES]}


def _find_missing(request: FindMissing) -> list[dict[str, Any]]:
    """Look for the statements in turn, each in another of the longest segments; or for all beside the moment."""
    statements = cloze_statements(request.question)
    texts = statements.queries or (request.question.text,)
    segments = sorted(request.segments, key=lambda each: each.start_s - each.end_s)
    then = judge_notes.find_moments(statements.moment, request.notes) if statements.moment else []
    beside = [
        segment
        for segment in segments
        for note in then
        if note.start_s == (segment.start_s if statements.order == "after" else segment.end_s)
        and note.video_id == segment.video_id
    ]
    if beside:
        texts = statements.options or texts
        segments = beside[:1] * len(texts)
    return [
        {"segment": segment.number, "description": text}
        for segment, text in zip(segments[: request.most], cycle(texts), strict=False)
    ]
