"""Scenes and chapters that a prompt lists, by their words: which of them a question speaks of more than of others."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core.question import Note, Question, Segment
from agent.models.rulebased import word_overlap


def promise(question: Question, chapters: Sequence[Note], part: Segment) -> float:
    """The promise, from 0 to 1, of the chapter that a part of a video lies in, by the words of its title and summary.

    The share of the question's words that it holds, rare words counting more, less the least share of any chapter:
    where all speak alike of the question none of them promises anything.
    """
    shares = word_overlap.shares(question, chapters)
    inside = [max(0.0, min(each.end_s, part.end_s) - max(each.start_s, part.start_s)) for each in chapters]
    inside = [s if each.video_id == part.video_id else 0.0 for s, each in zip(inside, chapters, strict=True)]
    at = max(range(len(chapters)), key=lambda number: inside[number], default=None)
    return 0.0 if at is None or not inside[at] else shares[at] - min(shares)
