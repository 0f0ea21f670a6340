"""Rules by which the built-in model replies: one for each kind of request, here those that several agents send.

The rule of a request that one agent alone sends stands beside that agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.requests.verify import Verify
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import calibrate
from tests.world.rules.chapters import promise
from tests.world.rules.descriptions import describe
from tests.world.rules.frames import find_moment, frames_settle, judge_frames, match_frames
from tests.world.rules.notes import is_settled, judge
from tests.world.rules.quoted_lines import screen_reply
from tests.world.rules.statements import Verdict, cloze_statements, to_reply

MAX_QUERIES = 5


@singledispatch
def rule(request: Request[Any], environment: Environment) -> dict[str, Any]:
    """Return the reply to a request as JSON values, from what the environment holds.

    Frames and notes are cited by their
    places, from 1. Raises `NeedsLanguage` for a kind of request that has no rule.

    `@rule.register(KindOfRequest)` gives one to a kind of request, and to those that derive from it.
    """
    raise NeedsLanguage(
        f"the built-in model compares pictures with words and has no language for {type(request).__name__}; "
        "this agent needs a language model; give --model and --base-url"
    )


@rule.register(DiscoverQueries)
def _discover(request: DiscoverQueries, environment: Environment) -> dict[str, Any]:
    texts = cloze_statements(request.question).queries
    return {"queries": texts[:MAX_QUERIES] or (request.question.text,)}


def new_statements(question: Question, known: Sequence[str]) -> list[str]:
    folded = {query.casefold() for query in known}
    statements = cloze_statements(question)
    return [text for text in (*statements.queries, *statements.options) if text not in folded][:MAX_QUERIES]


@rule.register(ScoreSegments)
def score(request: ScoreSegments, environment: Environment) -> dict[str, Any]:
    """Score each segment by the best match of a statement with a frame at its borders, a new one if it has one."""
    queries = cloze_statements(request.question).queries or (request.question.text,)
    matches = match_frames(environment, queries, request.frames)
    new = {(frame.video_id, frame.time_s) for frame in request.new_frames}
    scores: list[dict[str, Any]] = []
    for part in request.segments:
        beside = [
            at
            for at, frame in enumerate(request.frames)
            if frame.video_id == part.video_id and frame.time_s in (part.start_s, part.end_s)
        ]
        telling = [at for at in beside if (part.video_id, request.frames[at].time_s) in new]
        pairs = ((at, text) for at in telling or beside for text in range(len(queries)))
        at, text = max(pairs, key=lambda pair: float(matches[pair]))
        score = round(100 * float(calibrate(matches[at, text])))
        explanation = f"{queries[text]!r}, perhaps" if score else ""
        if (told := round(100 * promise(request.question, getattr(request, "chapters", ()), part))) > score:
            score, explanation = told, "its summary speaks of it"
        scores.append({"segment": part.number, "reasoning": explanation, "score": score})
    return {"segments": scores}


@rule.register(Decide)
def _decide(request: Decide, environment: Environment) -> dict[str, Any]:
    verdict = judge_frames(environment, request.question, request.frames)
    open_ones = [each for each in request.candidates if each.explorable]
    clear = _recall(request, environment) if getattr(request, "notes", ()) else {}
    if clear.get("action") == "answer":
        return clear
    if frames_settle(verdict) or request.must_answer or not open_ones:
        return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
    return {"action": "explore", "segment": _next_segment(environment, request.question, open_ones, request.frames)}


def _next_segment(
    environment: Environment, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]
) -> int:
    """Return the segment with the highest score, or the one beside the moment that the question names."""
    statements = cloze_statements(question)
    moment = find_moment(environment, statements, frames)
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


@rule.register(AnswerFrames)
def _answer_frames(request: AnswerFrames, environment: Environment) -> dict[str, Any]:
    """Answer what the text on screen, the frames or the notes show clearly; else what the frames show best."""
    clear = _recall(request, environment) if request.notes else {}
    if clear.get("action") == "answer":
        return clear
    verdict = judge_frames(environment, request.question, request.frames)
    return to_reply(request.question, verdict, [each.time_s for each in request.frames])


@rule.register(AnswerNotes)
def _answer_notes(request: AnswerNotes, environment: Environment) -> dict[str, Any]:
    question, notes = request.question, request.notes
    return screen_reply(question, notes) or to_reply(question, judge(question, notes), [each.start_s for each in notes])


@rule.register(Recall)
@rule.register(Verify)
def _recall(request: Recall | Verify | AnswerFrames | Decide, environment: Environment) -> dict[str, Any]:
    """Answer what text on screen, frames or notes show clearly; for a follow-up, those of earlier questions."""
    question, frames, notes = request.question, request.frames, getattr(request, "notes", ())
    if (written := screen_reply(question, notes, len(frames))) is not None:
        return written
    verdict = judge_frames(environment, question, frames)
    if frames_settle(verdict):
        return to_reply(question, verdict, [each.time_s for each in frames])
    verdict = judge(question, notes)
    if not is_settled(verdict):
        return to_reply(question, Verdict(), ())
    reply = to_reply(question, verdict, [each.start_s for each in notes])
    return reply | {"evidence": [len(frames) + number for number in verdict.evidence]}


@rule.register(DescribeSegment)
def _describe_segment(request: DescribeSegment, environment: Environment) -> dict[str, Any]:
    whole = describe(environment, request.frames)
    return {"caption": whole.text, "confidence": 100 * whole.confidence}
