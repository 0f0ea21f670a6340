"""Verdicts on notes in general English: the option most of whose words the notes hold.

For notes that are not about the sketch world (`sketch_words`), where none states an option outright.
The score of an option is the share of its words that a note holds, on average over the notes; words that few notes
hold weigh more (inverse document frequency, Sparck Jones 1972), and the forms of a word count as one. No sentence is
understood: the words only separate what the notes are about from what they are not about. A weak baseline: of
EgoSchema's 500 questions, with all captions of the video, it answers 49 % rightly, of NExT-QA's validation 45 %
(chance: 20 %).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.similarity.words import stems
from tests.world.rules.sketch_words import COLOURS, HOURS, NUMBERS, PLACES, THINGS, TITLES
from tests.world.rules.statements import Verdict

MOST_EVIDENCE = 4


Share = Callable[[frozenset[str], frozenset[str]], float]


def is_general(notes: Sequence[Note]) -> bool:
    """Return True if most of the different words of notes are not words of the sketch world."""
    words = frozenset[str]().union(*(stems(note.text) for note in notes))
    return len(words & _sketch_words()) * 2 < len(words)


def judge_by_overlap(question: Question, notes: Sequence[Note]) -> Verdict:
    """Choose the option most of whose words the notes hold, of equals the first; none if they hold no word of any."""
    words_of_notes = [stems(note.text) for note in notes]
    share = _rarity_weighted_share(words_of_notes)
    confidences = [1.0 if note.confidence is None else note.confidence for note in notes]
    held = [
        [confidence * share(words, each) for each, confidence in zip(words_of_notes, confidences, strict=True)]
        for words in map(stems, question.options)
    ]
    scores = [sum(each) / max(1, len(each)) for each in held]
    best = max(range(len(scores)), key=lambda option: scores[option], default=None)
    if best is None or scores[best] == 0.0:
        return Verdict()
    lead = scores[best] - max((score for option, score in enumerate(scores) if option != best), default=0.0)
    ranked = sorted((at for at, each in enumerate(held[best]) if each), key=lambda at: -held[best][at])
    return Verdict(best, scores[best], lead, tuple(at + 1 for at in sorted(ranked[:MOST_EVIDENCE])))


def overlap_shares(question: Question, notes: Sequence[Note]) -> list[float]:
    """Return the share of the words of question and options that each note holds, weighted by how few of the notes
    do.
    """
    words_of_notes = [stems(note.text) for note in notes]
    share, words = _rarity_weighted_share(words_of_notes), stems(" ".join((question.text, *question.options)))
    return [share(words, each) for each in words_of_notes]


def _rarity_weighted_share(words_of_notes: Sequence[frozenset[str]]) -> Share:
    """Return a function that gives the share of some words in others, each word weighted by how few of the notes
    hold it.
    """
    note_counts = Counter(word for each in words_of_notes for word in each)

    def weight(words: frozenset[str]) -> float:
        # fsum: the same in any order of the words
        return math.fsum(math.log(1 + len(words_of_notes) / max(1, note_counts[word])) for word in words)

    return lambda words, held: weight(words & held) / weight(words) if words else 0.0


@cache
def _sketch_words() -> frozenset[str]:
    things = (*THINGS, "people", "cacti", "title card says nothing")
    return stems(" ".join((*things, *COLOURS, *PLACES, *HOURS, *NUMBERS, *TITLES)))
