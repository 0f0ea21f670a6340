"""Replies to requests by similarity alone: one function for each kind of request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import INSUFFICIENT
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from kinodex.agent.requests.tree import MAX_QUERIES, Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.requests.verify import Verify
from kinodex.agent.similarity.options import (
    MOST_EVIDENCE,
    Choice,
    choose_option,
    cosines_of_frames,
    deviations_of_frames,
)
from kinodex.agent.similarity.statements import queries, subject
from kinodex.agent.similarity.words import STATED, shares, stems
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.variants.longvideoagent.clips import best_matching_clips
from kinodex.agent.variants.longvideoagent.requests import LocateClips, ReadFrames
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import calibrate

Values = dict[str, Any]
"""A reply as JSON values; frames and notes are cited by their places, from 1."""


@singledispatch
def reply_to(request: Request[Any], environment: Environment) -> Values:
    """Return the reply to a request; raises `NeedsLanguage` for a kind that similarity cannot answer."""
    raise NeedsLanguage(
        f"similarity compares pictures with words and has no language for {type(request).__name__}; "
        "this agent needs a language model; give --model and --base-url"
    )


@reply_to.register(DiscoverQueries)
def _discover(request: DiscoverQueries, environment: Environment) -> Values:
    return {"queries": queries(request.question)[:MAX_QUERIES]}


@reply_to.register(ProposeQueries)
def _propose(request: ProposeQueries, environment: Environment) -> Values:
    known = {query.casefold() for query in request.known}
    return {"queries": [text for text in queries(request.question) if text.casefold() not in known][:MAX_QUERIES]}


@reply_to.register(ScoreSegments)
def _score(request: ScoreSegments, environment: Environment) -> Values:
    """Rate each segment by the calibrated match of its best frame, or of a line at that time, with a query."""
    texts = queries(request.question)
    matches = deviations_of_frames(environment, texts, request.frames)
    new = {(frame.video_id, frame.time_s) for frame in request.new_frames}
    scores = []
    for part in request.segments:
        inside = [
            at
            for at, frame in enumerate(request.frames)
            if frame.video_id == part.video_id and part.start_s <= frame.time_s <= part.end_s
        ]
        telling = [at for at in inside if (part.video_id, request.frames[at].time_s) in new] or inside
        deviations = matches[telling].max(axis=0) if telling else np.zeros(len(texts))
        best = int(np.argmax(deviations))
        score = round(100 * float(calibrate(deviations[best])))
        reasoning = f"{texts[best]!r}, perhaps" if score else ""
        scores.append({"segment": part.number, "reasoning": reasoning, "score": score})
    return {"segments": scores}


@reply_to.register(Decide)
def _decide(request: Decide, environment: Environment) -> Values:
    """Answer if the choice is clear or nothing is left to see; else explore the segment with the highest score."""
    choice = _chosen(request, environment)
    open_ones = [each for each in request.candidates if each.explorable]
    if request.must_answer or not open_ones or (choice is not None and choice.is_clear):
        return _conclude(request, environment, choice)
    best = max(
        open_ones, key=lambda each: (each.score or 0.0, not each.divided, each.segment.end_s - each.segment.start_s)
    )
    return {"action": "explore", "segment": best.segment.number}


@reply_to.register(ChooseFrames)
def _choose_frames(request: ChooseFrames, environment: Environment) -> Values:
    """Answer if the choice is clear, else ask for the middles of the longest stretches that were not seen."""
    choice = _chosen(request, environment)
    if choice is not None and choice.is_clear:
        return _conclude(request, environment, choice)
    return look_between(request)


def look_between(request: ChooseFrames) -> Values:
    """Ask for the middles of the longest unseen stretches of the video of which least was seen."""
    video = min(request.videos, key=lambda each: sum(video_id == each.video_id for video_id, _ in request.seen))
    times_s = sorted([video.start_s, *(at_s for video_id, at_s in request.seen if video_id == video.video_id)])
    gaps_s = sorted(pairwise([*times_s, video.end_s]), key=lambda gap: gap[0] - gap[1])
    middles_s = [(start_s + end_s) / 2 for start_s, end_s in gaps_s[: request.count]]
    return {"action": "look", "video": video.video_id, "times_s": middles_s}


@reply_to.register(LocateClips)
def _locate(request: LocateClips, environment: Environment) -> Values:
    """Locate the clip whose words hold most of what is asked about; where they hold little, by its pictures."""
    about = subject(request.question)
    wanted = stems(about)
    held = {clip.number: len(wanted & stems(clip.text)) for clip in request.clips}
    best = max(held, key=lambda number: held[number])
    told = held[best] >= STATED * max(1, len(wanted))
    seen = [] if told else best_matching_clips(environment, request.clips, about, request.window)
    return {"clips": [clip.number for clip in seen] or [best]}


@reply_to.register(ReadFrames)
def _read_frames(request: ReadFrames, environment: Environment) -> Values:
    """Say how well the best frame fits the query: all that can be said of it without words of one's own."""
    match = float(calibrate(deviations_of_frames(environment, [request.query], request.frames)).max())
    return {
        "observation": f"The best frame fits {request.query!r} by {match:.2f} (0: as any frame of the film; 1: most)."
    }


@reply_to.register(AnswerFrames)
@reply_to.register(AnswerNotes)
@reply_to.register(Verify)
def _answer(request: AnswerFrames | AnswerNotes | Verify, environment: Environment) -> Values:
    return _conclude(request, environment, _chosen(request, environment))


@reply_to.register(Recall)
def _recall(request: Recall, environment: Environment) -> Values:
    choice = _chosen(request, environment)
    if choice is None or not choice.is_clear:
        return {"action": INSUFFICIENT}
    return _conclude(request, environment, choice)


def _chosen(request: Any, environment: Environment) -> Choice | None:
    question = request.question
    return choose_option(environment, question, request.frames, _notes(request)) if question.options else None


def _conclude(request: Any, environment: Environment, choice: Choice | None) -> Values:
    """Return the option chosen; or none, with what fits the question best as evidence.

    None is chosen if the options do not differ, unless the request does not allow that.
    """
    question: Question = request.question
    if choice is not None and (choice.differs or request.declining == "never"):
        letter, text = question.lettered[choice.option]
        return {"action": "answer", "option": letter, "answer": text, "evidence": choice.evidence}
    return {"action": INSUFFICIENT, "evidence": _nearest(environment, question, request.frames, _notes(request))}


def _nearest(
    environment: Environment, question: Question, frames: Sequence[ShownFrame], notes: Sequence[Note]
) -> list[int]:
    """Return the places of the frames and notes that fit what a question is about best, in order."""
    about = [subject(question)]
    words = shares(about, notes)[:, 0]
    compared = frames if environment.has_vectors and environment.source.knows(*about) else ()
    pictures = cosines_of_frames(environment, about, compared)[:, 0]
    best = [int(at) for at in np.argsort(-pictures, kind="stable")[:MOST_EVIDENCE]]
    lines = [int(at) for at in np.argsort(-words, kind="stable")[:MOST_EVIDENCE] if words[at] > 0]
    return [at + 1 for at in sorted(best)] + [len(frames) + at + 1 for at in sorted(lines)]


def _notes(request: Any) -> Sequence[Note]:
    return getattr(request, "notes", ())
