"""Verdicts on notes: the statement behind a question that shares most words with one of them.

Words only, no meaning: "a red kite in the desert" is found in a note that holds red, kite and desert. A note bears
on a question if it holds most of the words that the question itself asks about. Where that leads nowhere and the
notes are in general English, options are compared by word overlap (`judge_by_overlap`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.similarity.words import SMALL
from tests.world.rules.quoted_lines import is_talk
from tests.world.rules.statements import SOON_S, Statements, Verdict, cloze_statements
from tests.world.rules.word_overlap import is_general, judge_by_overlap, overlap_shares

MIN_BEARING = 0.75
"""The share of the question's own words that a note must hold to bear on it."""
MIN_STATED = 0.9
"""The share of a statement's words, weighted by the note's confidence, from which on it counts as stated."""
MIN_PARTIAL = 0.5
"""The share of a statement's words that makes a note worth following up; an answer needs more."""


def judge(question: Question, notes: Sequence[Note]) -> Verdict:
    """Choose what the notes state more than half of; without choices, check that one speaks of the subject.

    Of two that are stated equally, none is chosen. Failing that, in general English, the one with most words in the
    notes.
    """
    if is_talk(question):
        return Verdict()
    verdict = _judge_statements(question, notes)
    if verdict.choice is None and is_general(notes):
        return judge_by_overlap(question, notes)
    return verdict


def _judge_statements(question: Question, notes: Sequence[Note]) -> Verdict:
    statements = cloze_statements(question)
    bearing = _bearing(statements, notes)
    texts = statements.options or tuple(text for text in (statements.subject,) if text)
    if not bearing or not texts:
        return Verdict()
    sure = [1.0 if note.confidence is None else note.confidence for note in notes]
    shares = [[word_share(text, notes[at].text) * sure[at] for at in bearing] for text in texts]
    if statements.order in ("first", "last") and statements.moment is None:
        return _earliest_note(shares, [notes[at].start_s for at in bearing], bearing, last=statements.order == "last")
    best_of = [max(each) for each in shares]
    best = max(range(len(texts)), key=lambda choice: best_of[choice])
    lead = best_of[best] - max((each for choice, each in enumerate(best_of) if choice != best), default=0.0)
    evidence = tuple(at + 1 for at, share in zip(bearing, shares[best], strict=True) if share == best_of[best])
    partly_stated = any(word_share(texts[best], notes[number - 1].text) > MIN_PARTIAL for number in evidence)
    return Verdict(best if partly_stated and lead > 0 else None, best_of[best], lead, evidence)


def is_settled(verdict: Verdict) -> bool:
    return verdict.choice is not None and verdict.score >= MIN_STATED


def is_relevant(query: str, text: str) -> bool:
    queries = cloze_statements(Question(query)).queries or (query,)
    return any(word_share(each, text) >= MIN_PARTIAL for each in queries)


def relevances(question: Question, notes: Sequence[Note]) -> list[int]:
    """Rate notes: 3 for one that states all of some statement behind the question, 2 for a part of one, else 1.

    In general English by the words of question and options that they hold: 3 near the best, 2 for half of it.
    """
    if is_general(notes):
        shares = overlap_shares(question, notes)
        most = max(shares, default=0.0) or 1.0
        high, low = 0.75 * most, 0.5 * most
    else:
        queries = cloze_statements(question).queries
        shares = [max((word_share(text, note.text) for text in queries), default=0.0) for note in notes]
        high, low = MIN_STATED, MIN_PARTIAL
    return [3 if share >= high else 2 if share >= low else 1 for share in shares]


def find_moments(text: str, notes: Sequence[Note]) -> list[Note]:
    return [note for note in notes if word_share(text, note.text) >= MIN_STATED]


def _bearing(statements: Statements, notes: Sequence[Note]) -> list[int]:
    if statements.moment is None:
        return [at for at, note in enumerate(notes) if word_share(statements.subject, note.text) >= MIN_BEARING]
    then = find_moments(statements.moment, notes)
    return [at for at, note in enumerate(notes) if any(_soon(statements, each, note) for each in then)]


def _soon(statements: Statements, moment: Note, note: Note) -> bool:
    passed_s = note.start_s - moment.start_s if statements.order == "after" else moment.start_s - note.start_s
    return note.video_id == moment.video_id and 0 < passed_s <= SOON_S


def _earliest_note(
    shares: Sequence[Sequence[float]], times_s: Sequence[float], bearing: Sequence[int], *, last: bool
) -> Verdict:
    """Choose what a note states outright before (or after) any other choice; settled only if all are stated."""
    sign = -1.0 if last else 1.0
    found = [
        (sign * times_s[at], choice, at)
        for choice, each in enumerate(shares)
        for at, share in enumerate(each)
        if share >= MIN_STATED
    ]
    if not found:
        return Verdict()
    _, best, at = min(found)
    all_stated = len({choice for _, choice, _ in found}) == len(shares)
    return Verdict(best, shares[best][at] if all_stated else MIN_PARTIAL, 1.0, (bearing[at] + 1,))


def word_share(text: str, note_text: str) -> float:
    """Return the share of a text's words that a note holds; 1 for a text without words."""
    words = _words(text)
    return len(words & _words(note_text)) / len(words) if words else 1.0


def _words(text: str) -> set[str]:
    words = re.findall(r"[\w-]+", text.casefold())
    plural = [len(word) > 3 and word.endswith("s") and not word.endswith("ss") for word in words]
    return {word[:-1] if many else word for word, many in zip(words, plural, strict=True)} - SMALL
