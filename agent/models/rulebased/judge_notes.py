"""Judging notes: which statement behind a question shares most words with one of them.

Words only, no meaning: "a red kite in the desert" is found in a note that holds red, kite and desert. A note bears
on a question if it holds most of the words that the question itself asks about. Where that leads nowhere and the notes
are in general English, options are weighed (`weighing`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.core.question import Note, Question
from agent.models.rulebased import word_overlap as weighing
from agent.models.rulebased.statements import Statements, statements
from agent.models.rulebased.verdict import SOON_S, Verdict
from agent.models.rulebased.word_overlap import SMALL
from agent.variants.longvideoagent.requests import LocateClips

BEARS = 0.75
"""The share of the question's own words that a note must hold to bear on it."""
SURE = 0.9
"""The share of a statement's words, weighed by the note's confidence, from which on it counts as said."""
PARTLY = 0.5
"""The share of a statement's words that makes a note worth following up; an answer takes more."""


def judge(question: Question, notes: Sequence[Note]) -> Verdict:
    """Which choice the notes say more than half of; without choices, whether one speaks of the subject.

    Of two that are said alike, none is chosen. Failing that, in general English, the one whose words are held most.
    """
    verdict = _said(question, notes)
    return weighing.weigh(question, notes) if verdict.choice is None and weighing.is_general(notes) else verdict


def _said(question: Question, notes: Sequence[Note]) -> Verdict:
    asked = statements(question)
    bearing = _bearing(asked, notes)
    texts = asked.options or tuple(text for text in (asked.subject,) if text)
    if not bearing or not texts:
        return Verdict()
    said = [[_weighed(text, notes[at]) for at in bearing] for text in texts]
    if asked.order in ("first", "last") and asked.moment is None:
        return _earliest(said, [notes[at].start_s for at in bearing], bearing, last=asked.order == "last")
    best_of = [max(each) for each in said]
    best = max(range(len(texts)), key=lambda choice: best_of[choice])
    lead = best_of[best] - max((each for choice, each in enumerate(best_of) if choice != best), default=0.0)
    evidence = tuple(at + 1 for at, share in zip(bearing, said[best], strict=True) if share == best_of[best])
    said_of = any(_share(texts[best], notes[number - 1]) > PARTLY for number in evidence)
    return Verdict(best if said_of and lead > 0 else None, best_of[best], lead, evidence)


def settled(verdict: Verdict) -> bool:
    """Whether a note says one choice outright."""
    return verdict.choice is not None and verdict.score >= SURE


def touches(query: str, text: str) -> bool:
    """Whether a text holds as many words of what a query asks to see as make it worth following up."""
    wanted = statements(Question(query)).queries or (query,)
    return any(_held(each, text) >= PARTLY for each in wanted)


def relevances(question: Question, notes: Sequence[Note]) -> list[int]:
    """3 for a note that says all of some statement behind the question, 2 for a part of one, else 1."""
    if weighing.is_general(notes):
        return weighing.relevances(question, notes)
    queries = statements(question).queries
    shares = [max((_share(text, note) for text in queries), default=0.0) for note in notes]
    return [3 if best >= SURE else 2 if best >= PARTLY else 1 for best in shares]


def moments(text: str, notes: Sequence[Note]) -> list[Note]:
    """The notes that say outright what a question measures time from."""
    return [note for note in notes if _share(text, note) >= SURE]


def located(request: LocateClips) -> list[int]:
    """The clip, of those not visited yet, whose words hold most of what is wished for; none if they hold too little."""
    wanted = [request.wish] if request.wish else list(statements(request.question).queries)
    left = [clip for clip in request.clips if clip.number not in request.visited]
    shares = [(max((_held(text, clip.text) for text in wanted), default=0.0), -clip.number) for clip in left]
    best, number = max(shares, default=(0.0, 0))
    return [-number] if best >= BEARS else []


def _bearing(asked: Statements, notes: Sequence[Note]) -> list[int]:
    """Indices of the notes that can hold the answer: those of the subject, or soon after or before the moment."""
    if asked.moment is None:
        return [at for at, note in enumerate(notes) if _share(asked.subject, note) >= BEARS]
    then = moments(asked.moment, notes)
    return [at for at, note in enumerate(notes) if any(_soon(asked, each, note) for each in then)]


def _soon(asked: Statements, moment: Note, note: Note) -> bool:
    passed_s = note.start_s - moment.start_s if asked.order == "after" else moment.start_s - note.start_s
    return note.video_id == moment.video_id and 0 < passed_s <= SOON_S


def _earliest(
    said: Sequence[Sequence[float]], times_s: Sequence[float], bearing: Sequence[int], *, last: bool
) -> Verdict:
    """The choice that a note says outright before (or after) any other is said; sure only if all are said."""
    sign = -1.0 if last else 1.0
    found = [
        (sign * times_s[at], choice, at)
        for choice, shares in enumerate(said)
        for at, share in enumerate(shares)
        if share >= SURE
    ]
    if not found:
        return Verdict()
    _, best, at = min(found)
    all_said = len({choice for _, choice, _ in found}) == len(said)
    return Verdict(best, said[best][at] if all_said else PARTLY, 1.0, (bearing[at] + 1,))


def _weighed(text: str, note: Note) -> float:
    return _share(text, note) * (1.0 if note.confidence is None else note.confidence)


def _share(text: str, note: Note) -> float:
    return _held(text, note.text)


def _held(text: str, said: str) -> float:
    """The share of a text's words that what was said holds; 1 for a text without words."""
    wanted = _words(text)
    return len(wanted & _words(said)) / len(wanted) if wanted else 1.0


def _words(text: str) -> set[str]:
    return {_singular(word) for word in re.findall(r"[\w-]+", text.casefold())} - SMALL


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
