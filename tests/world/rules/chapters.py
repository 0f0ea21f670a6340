"""Scenes and chapters that a prompt lists, by their words: which of them a question speaks of more than of others."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Segment
from tests.world.rules.word_overlap import overlap_shares

MOST_OF_IT = 0.5


def promise(question: Question, chapters: Sequence[Note], part: Segment) -> float:
    """Return the promise, from 0 to 1, of the chapter that a part of a video lies in, by the words of its title and
    summary.

    The share of the question's words that it holds, rare words counting more, less the least share of any chapter:
    where all speak alike of the question none of them promises anything. A part of less than `MOST_OF_IT` of its
    chapter has no promise: there frames say more than a summary of all.
    """
    shares = overlap_shares(question, chapters)
    inside = [max(0.0, min(each.end_s, part.end_s) - max(each.start_s, part.start_s)) for each in chapters]
    inside = [s if each.video_id == part.video_id else 0.0 for s, each in zip(inside, chapters, strict=True)]
    at = max(range(len(chapters)), key=lambda number: inside[number], default=None)
    if at is None or inside[at] < MOST_OF_IT * (chapters[at].end_s - chapters[at].start_s):
        return 0.0
    return shares[at] - min(shares)
