"""Statements behind a question, one of which is true, and the verdict on them as a reply.

A cloze statement is a question and an option as one statement that a text tower can compare with a picture: "What
colour is the kite?" and "red" become "red kite". Words and word order only, no grammar: good enough for
`RuleBasedModel`, which has no language model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kinodex.agent.protocol.question import Question

STATED_COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "grey")
STATED_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SOON_S = 60.0
"""The reach of "after" and "before" from their moment."""

_TIME = re.compile(r"\b(?:right|just|directly|immediately|shortly|soon)?\s*\b(after|before)\b\s+(.+)$")
_ORDER = re.compile(r"\b(first|last)\b")
_FILLER = re.compile(
    r"\b(?:in|of|during|throughout) (?:the|this) (?:video|film|movie|clip|footage|recording)\b"
    r"|\b(?:of|among) (?:these|the following|the options)(?: \w+)?\b"
    r"|\bthe following\b|\bthere\b|\bon (?:the )?screen\b"
)
_QUESTION_WORDS = re.compile(
    r"^(?:(?:in|on|at|to|of|from) )?(?:what|which|who|whose|when|where|why|how)\b"
    r"(?: (?:colou?r|many|much|kind|type|sort|number|place|location|things?|objects?|scene|of|long|often))*"
)
_VERBS = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|had|can|could|will|be|been|being|we|you|i|see|sees|seen|show|shows|"
    r"shown|showing|visible|appear|appears|appeared|come|comes|came|happen|happens|happened|follow|follows|"
    r"occur|occurs|mentioned|exactly|next(?! to))\b"
)
_ARTICLE = re.compile(r"^(?:the|a|an|any|some)\s+")
_ASKS_PLACE = re.compile(r"^(?:where\b|(?:in|on|at) (?:what|which)\b|(?:what|which) (?:place|location))")
_PREPOSITION = re.compile(r"^(?:in|on|at|by|over|under|among|near|inside|above|below|between|behind|beside)\b")


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements behind a question.

    `subject` is the question without its question words, `options` the statements one of which is true,
    `moment` the moment from which the question measures time, if `order` is "after" or "before".
    """

    subject: str
    options: tuple[str, ...]
    order: str | None = None
    moment: str | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """Texts to search for, the most specific first, each once."""
        queries = (self.moment,) if self.moment else (*self.options, self.subject)
        return tuple(dict.fromkeys(text for text in queries if text))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best choice (None: nothing bears on the question), its score and its lead over the second.

    `evidence` holds the numbers, from 1, of the frames or notes that show it. Frames are judged in deviations, notes
    by the share of words found.
    """

    choice: int | None = None
    score: float = 0.0
    lead: float = 0.0
    evidence: tuple[int, ...] = ()


def cloze_statements(question: Question) -> Statements:
    """Turn a question into statements; without options, colours and numbers come from a basic vocabulary."""
    text = re.sub(r"[^\w\s'-]", " ", question.text.casefold())
    text = re.sub(r"\s+", " ", text).strip()
    order: str | None = None
    moment: str | None = None
    if timed := _TIME.search(text):
        order, moment, text = timed[1], _subject(timed[2]), text[: timed.start()].strip()
    elif ordered := _ORDER.search(text):
        order, text = ordered[1], _ORDER.sub(" ", text)
    subject = _subject(text)
    options = tuple(_statement(text, subject, option) for option in choices(question, text))
    return Statements(subject, options, order, moment)


def to_reply(question: Question, verdict: Verdict, times_s: Sequence[float]) -> dict[str, Any]:
    """Turn a verdict into a `Conclusion` or `Decision` as JSON values.

    `times_s` are those of all frames or notes that were judged.
    """
    if verdict.choice is None:
        return {"action": "insufficient_evidence"}
    named = choices(question)
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = (
        named[verdict.choice]
        if named
        else f"{cloze_statements(question).subject} at {times_s[verdict.evidence[0] - 1]:.1f} s"
    )
    return {"action": "answer", "option": letter, "answer": text, "evidence": verdict.evidence}


def choices(question: Question, text: str | None = None) -> tuple[str, ...]:
    """Return the options, else the colours or numbers that a question asks for, by its words or those given as
    `text`.
    """
    text = question.text.casefold() if text is None else text
    if question.options:
        return question.options
    if re.search(r"\bcolou?r\b", text):
        return STATED_COLOURS
    return STATED_NUMBERS[1:] if "how many" in text else ()


def _subject(text: str) -> str:
    text = _QUESTION_WORDS.sub(" ", _FILLER.sub(" ", text).strip())
    text = re.sub(r"\s+", " ", _VERBS.sub(" ", text)).strip()
    return re.sub(r"^(?:right|exactly|just)$", "", _ARTICLE.sub("", text))


def _statement(text: str, subject: str, option: str) -> str:
    option = _ARTICLE.sub("", option.strip().casefold().rstrip("."))
    if option in ("yes", "no"):
        return subject if option == "yes" else f"no {subject}"
    if option.isdecimal() and int(option) < len(STATED_NUMBERS):
        option = STATED_NUMBERS[int(option)]
    if _ASKS_PLACE.match(text) and subject:
        return f"{subject} {option}" if _PREPOSITION.match(option) else f"{subject} in the {option}"
    return f"{option} {subject}".strip()
