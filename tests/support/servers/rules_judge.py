"""Judge frames or notes by a question: its statements against each of them, in the order of time.

`tests.world.rules.statements` turns the question and its options into statements; the rest is a few rules. A
`View` is frames or notes, whichever, with a strength of 1 for a statement that it clearly shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.question import Question
from tests.support.servers import rules_words
from tests.support.servers.rules_prompt import Asked, Part
from tests.world.rules.quoted_lines import is_talk
from tests.world.rules.statements import Statements, choices, cloze_statements

BELIEVABLE = 0.75
"""Below this strength nothing has to do with the question."""
CLEAR = 0.03
"""The lead over the next choice that settles a question."""
SOON_S = 60.0
"""How far "right after" reaches."""
PROMISING = 0.25
"""The lead of a chapter in words from which on it is looked into first."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """Frames or notes to judge, each with its number, time and video; `strengths` of texts [t] in them: [n, t]."""

    numbers: Sequence[int]
    times_s: Sequence[float]
    videos: Sequence[str]
    strengths: Callable[[Sequence[str]], Floats]
    words: Callable[[int], str]
    """What the one at an index says by itself: the answer to a question without choices."""
    ranges: bool = False
    """Whether one of them may hold both a moment and what comes after it."""


@dataclass(frozen=True)
class Verdict:
    """The best choice, how strongly it shows, its lead, and the numbers of what shows it, the strongest first."""

    choice: int | None = None
    text: str = ""
    strength: float = 0.0
    lead: float = 0.0
    evidence: tuple[int, ...] = ()

    @property
    def settled(self) -> bool:
        return self.strength >= 1.0 and self.lead >= CLEAR

    @property
    def believable(self) -> bool:
        return self.choice is not None and self.strength >= BELIEVABLE


def wanted(question: Question) -> Statements:
    """The things that the question asks to see."""
    asked = cloze_statements(question)
    if "title card" in question.text and question.options:
        asked = replace(asked, options=tuple(f"title card that says {option}" for option in question.options))
    return asked


def texts_of(question: Question) -> tuple[str, ...]:
    """Every text that is worth looking for: the moment that the question names, and the options, else the subject."""
    asked = wanted(question)
    found = dict.fromkeys((asked.moment or "", *(asked.options or (asked.subject,))))
    return tuple(text for text in found if text) or (question.text,)


def judge(question: Question, view: View) -> Verdict:
    """Which choice is shown best; without choices, whether the subject is shown at all."""
    asked = wanted(question)
    texts = asked.options or texts_of(question)[-1:]
    inside = _in_question(asked, view)
    if not inside or is_talk(question):
        return Verdict()
    matches = view.strengths(texts)[inside]
    scores = matches.max(axis=0)
    best = int(np.argmax(scores))
    lead = float(scores[best] - np.delete(scores, best).max(initial=0.0))
    if asked.order in ("first", "last") and asked.moment is None:
        best, lead = _earliest(matches, [view.times_s[at] for at in inside], last=asked.order == "last")
    ranked = np.argsort(-matches[:, best], kind="stable")
    telling = [inside[at] for at in ranked if matches[at, best] >= max(BELIEVABLE, matches[ranked[0], best] - CLEAR)]
    named = choices(question)
    text = named[best] if named else view.words(inside[int(ranked[0])])
    return Verdict(best, text, float(matches[:, best].max()), lead, tuple(view.numbers[at] for at in telling[:4]))


def moment(question: Question, view: View) -> int | None:
    """Index of what shows the moment that the question's time is measured from.

    Where it is seen in several frames in a row, it is the one next to what the question asks about: the last for what
    comes after it, the first for what comes before.
    """
    asked = wanted(question)
    if not asked.moment or not view.numbers:
        return None
    matches = view.strengths([asked.moment])[:, 0]
    at = int(np.argmax(matches))
    if matches[at] < 1.0:
        return None
    of_video = [each for each in range(len(view.numbers)) if view.videos[each] == view.videos[at]]
    in_order = sorted(of_video, key=lambda each: view.times_s[each], reverse=asked.order == "before")
    for following in in_order[in_order.index(at) + 1 :]:
        if matches[following] < 1.0 or abs(view.times_s[following] - view.times_s[at]) > SOON_S:
            break
        at = following
    return at


def strongest(question: Question, view: View) -> tuple[int | None, float]:
    """Index of what shows anything that the question names, and how strongly."""
    if not view.numbers:
        return None, 0.0
    matches = view.strengths(texts_of(question)).max(axis=1)
    best = int(np.argmax(matches))
    return best, float(matches[best])


def letter(question: Question, verdict: Verdict) -> str | None:
    """The letter of the chosen option."""
    return question.lettered[verdict.choice][0] if question.options and verdict.choice is not None else None


def asked_for(query: str) -> Question:
    """A query of a tool as a question: its parts, divided by ";", are the options."""
    parts = [part.strip() for part in re.split(r"[;?]", query) if part.strip()]
    options = tuple(dict.fromkeys(part.casefold() for part in parts))
    return Question("which of these is seen?", options[:20] if len(options) > 1 else ()) if parts else Question("?")


def _in_question(asked: Statements, view: View) -> list[int]:
    """Indices of what can hold the answer: all, or what is soon after or before the moment asked about."""
    everything = range(len(view.numbers))
    if not asked.moment:
        return list(everything)
    matches = view.strengths([asked.moment])[:, 0] if view.numbers else np.zeros(0)
    if not len(matches) or matches.max() < 1.0:
        return []
    at = int(np.argmax(matches))
    low_s, high_s = (0.0, SOON_S) if asked.order == "after" else (-SOON_S, 0.0)
    return [
        each
        for each in everything
        if (view.ranges or each != at)
        and view.videos[each] == view.videos[at]
        and low_s <= view.times_s[each] - view.times_s[at] <= high_s
    ]


def _earliest(matches: Floats, times_s: Sequence[float], *, last: bool) -> tuple[int, float]:
    """The choice seen first (or last), with a lead only if every choice has been seen: another may come before."""
    seen = matches >= 1.0
    if not seen.any():
        return int(np.argmax(matches.max(axis=0))), 0.0
    sign = -1.0 if last else 1.0
    when = np.where(seen, sign * np.asarray(times_s)[:, None], np.inf).min(axis=0)
    return int(np.argmin(when)), 1.0 if seen.any(axis=0).all() else 0.0


def promises(asked: Asked) -> list[tuple[Part, float]]:
    """Each chapter listed with the share of what the question names in its words, less the least share of any."""
    parts = asked.chapters
    if not parts:
        return []
    shares = rules_words.strengths(texts_of(asked.question), [part.text for part in parts], [1.0] * len(parts))
    best = shares.max(axis=1, initial=0.0)
    return [(part, float(share - best.min())) for part, share in zip(parts, best, strict=True)]


def promise_of(asked: Asked, part: Part) -> float:
    """The promise, 0 to 1, of the chapter most of which a part of a video holds; 0 where it holds none."""
    found = [
        (common_s, promise)
        for each, promise in promises(asked)
        if each.video in ("", part.video) and (common_s := _common_s(part, each)) >= (each.end_s - each.start_s) / 2
    ]
    return max(found, default=(0.0, 0.0))[1]


def most_promising(asked: Asked) -> Part | None:
    """The chapter that leads by its words; None if none does."""
    part, promise = max(promises(asked), key=lambda each: each[1], default=(None, 0.0))
    return part if promise >= PROMISING else None


def _common_s(part: Part, other: Part) -> float:
    return min(part.end_s, other.end_s) - max(part.start_s, other.start_s)
