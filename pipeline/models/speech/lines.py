"""Cut words into lines as subtitles have them: at the ends of sentences and in pauses, none longer than 7 seconds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from kinodex.pipeline.models.speech.word_times import STEP_S, Word

LONGEST_LINE_S = 7.0
"""Longest time of one subtitle in common guides for subtitling."""
PAUSE_S = 0.7
LEAST_CUT_S = 1.0
"""No line is cut off shorter than this but at a pause or the end of a sentence."""
LONGEST_WORD_S = 1.0
SECONDS_A_LETTER = 0.15
"""A word is said in `LONGEST_WORD_S`, or, if it is long, in so much for each letter: the rest is a pause."""
SENTENCE_END = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\u0964\u0965\u061f\u06d4\u0589\u104b\u17d4\u1362]+[\"')\]\u201d\u2019\u00bb\u300d]*$"
)
ABBREVIATION = re.compile(r"^[\"'(\[]*((mr|mrs|ms|dr|st|prof|vs|etc|[a-z])\.)+$", re.IGNORECASE)
CLAUSE_END = re.compile(r"[,;:\u3001\uff0c\uff1b\uff1a\u060c\u061b\u104a\u1363\u2013\u2014-]$")
Ranges = Sequence[tuple[float, float]]


def cut_lines(words: Iterable[Word], breaks: Collection[int] = ()) -> Iterator[list[Word]]:
    """Yield the words of each line, in order; `breaks` are numbers of words where the model itself began a new part."""
    line: list[Word] = []
    good: set[int] = set()
    for number, word in enumerate(words):
        if line and (word.start_s - line[-1].end_s >= PAUSE_S or _ends_sentence(line[-1].text)):
            yield from _shorter(line, good)
            line, good = [], set()
        if number in breaks:
            good.add(len(line))
        line.append(word)
    if line:
        yield from _shorter(line, good)


def tidy_words(words: Sequence[Word], speech: Ranges | None, start_s: float, end_s: float) -> list[Word]:
    """Move words out of pauses: an attention that waits for the next word, or for the first, lies there.

    `speech` are the ranges where somebody speaks, where they are known; a word is never moved out of
    `[start_s, end_s)`.
    """
    tidy: list[Word] = []
    free_s = start_s  # words that the model gives no time get a little, and the next begins after it
    for at, word in enumerate(words):
        first, last = max(word.start_s, start_s), min(word.end_s, end_s)
        first, last = _most_heard(first, last, speech) if speech else (first, last)
        longest = max(LONGEST_WORD_S, SECONDS_A_LETTER * len(word.text))
        if last - first > longest:
            opens = at == 0 or _ends_sentence(words[at - 1].text)
            first, last = (last - longest, last) if opens else (first, first + longest)
        first = min(max(first, free_s), max(end_s - STEP_S, start_s))
        free_s = max(last, min(first + STEP_S, end_s))
        tidy.append(Word(word.text, first, free_s))
    return tidy


def _most_heard(start_s: float, end_s: float, speech: Ranges) -> tuple[float, float]:
    """Cut a word down to the range of speech that it shares most time with; one in a pause stays as it is."""
    shared = [(min(end_s, end) - max(start_s, start), max(start_s, start), min(end_s, end)) for start, end in speech]
    most = max(shared, key=lambda each: each[0])
    return (most[1], most[2]) if most[0] > 0 else (start_s, end_s)


def _shorter(line: list[Word], good: Collection[int]) -> Iterator[list[Word]]:
    """Cut a line that is too long in two where it is best cut, again and again."""
    while len(line) > 1 and line[-1].end_s - line[0].start_s > LONGEST_LINE_S:
        cut = _best_cut(line, good)
        yield line[:cut]
        line, good = line[cut:], {number - cut for number in good}
    yield line


def _best_cut(line: Sequence[Word], good: Collection[int]) -> int:
    """Find before which word to cut: at a pause, comma or break, late in the time that a line may take."""
    first_s, last_s = line[0].start_s, line[-1].end_s
    best, best_score = 1, float("-inf")
    for at, (before, after) in enumerate(pairwise(line), start=1):
        if before.end_s - first_s > LONGEST_LINE_S:
            break
        clause = 0.5 if at in good or CLAUSE_END.search(before.text) else 0.0
        stub = 1.0 if min(before.end_s - first_s, last_s - before.end_s) < LEAST_CUT_S else 0.0
        score = after.start_s - before.end_s + clause - stub + 0.1 * (before.end_s - first_s) / LONGEST_LINE_S
        best, best_score = (at, score) if score > best_score else (best, best_score)
    return best


def _ends_sentence(text: str) -> bool:
    return bool(SENTENCE_END.search(text)) and not ABBREVIATION.match(text)
