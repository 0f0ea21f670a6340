"""Quoted lines read by rules, and what is seen at their times, in frames or in the words of captions."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.models.rules import Sights, read_moment, sights_of, telling_lines
from kinodex.agent.protocol import SCREEN_TEXT, SUBTITLE, Note, Question
from tests.support.servers import rules_words
from tests.support.servers.rules_judge import Verdict
from tests.support.servers.rules_prompt import Frame, Part
from tests.support.servers.rules_sight import Eyes

LINES = (SUBTITLE, SCREEN_TEXT)
LEAST_LIKE = 0.3
"""The likeness of a picture to a text below which it shows nothing of it."""
LEAST_SHARE = 0.6
"""The share of a text's words below which a caption says nothing of it."""
MOST_LIKE = "most like: "
"""How a query for the best of several things begins: one is named though it is not clearly seen."""


def read_with_frames(sight: Eyes, question: Question, lines: Sequence[Part], frames: Sequence[Frame]) -> Verdict | None:
    """The answer that quoted lines and the frames at their times tell together; None where they tell none."""
    times_s, jpegs = [frame.time_s for frame in frames], [frame.jpeg for frame in frames]
    videos = [frame.video for frame in frames]
    sights = Sights(videos, times_s, times_s, lambda texts: sight.likenesses(texts, jpegs), LEAST_LIKE)
    return _verdict(question, lines, sights, [frame.number for frame in frames])


def read_with_notes(question: Question, notes: Sequence[Part]) -> Verdict | None:
    """The answer that quoted lines and captions of their times tell together; None where they tell none."""
    seen = [note for note in notes if note.source not in LINES]
    texts = [note.text for note in seen]
    sights = Sights(
        [note.video for note in seen],
        [note.start_s for note in seen],
        [note.end_s for note in seen],
        lambda wanted: rules_words.strengths(wanted, texts, [note.score for note in seen]),
        LEAST_SHARE,
    )
    return _verdict(question, notes, sights, [note.number for note in seen])


def _verdict(question: Question, lines: Sequence[Part], sights: Sights, numbers: Sequence[int]) -> Verdict | None:
    quoted = [line for line in lines if line.source in LINES]
    found = read_moment(question, as_notes(quoted), sights)
    if found is None:
        return None
    evidence = *(numbers[at] for at in found.sights), *(quoted[at].number for at in found.lines)
    return Verdict(found.choice, question.options[found.choice], 1.0, 1.0, evidence)


def lines_to_look_at(question: Question, notes: Sequence[Part]) -> list[Part]:
    """The quoted lines at whose times the answer is to be seen, in their order."""
    quoted = [note for note in notes if note.source in LINES]
    return [quoted[at] for at in telling_lines(question, as_notes(quoted))]


def look_for(question: Question) -> str:
    """The query for what is to be seen at the time of a line; "" of a question that no line places."""
    texts = sights_of(question)
    return f"{MOST_LIKE}{'; '.join(texts)}" if texts else ""


def most_like(sight: Eyes, query: str, frames: Sequence[Frame]) -> tuple[str, list[int]]:
    """The text of such a query that the frames are most like, and the numbers of those that are; "" for none."""
    texts = query.removeprefix(MOST_LIKE).split("; ")
    found = sight.likenesses(texts, [frame.jpeg for frame in frames])
    best = int(found.max(axis=0).argmax())
    alike = [frame.number for frame, match in zip(frames, found[:, best], strict=True) if match >= LEAST_LIKE]
    return (texts[best], alike) if alike else ("", [])


def as_notes(notes: Sequence[Part]) -> list[Note]:
    """Notes of a prompt as the agents have them."""
    return [Note(each.video, each.start_s, each.end_s, each.source, each.text, each.score) for each in notes]
