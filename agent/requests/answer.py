"""Requests for the answer, with which every agent ends, their replies, and the option that a reply names.

A bare text ("B") is accepted as a reply too. The option that it names is read, never guessed. From the surest sign to
the least sure: the words of one option alone; what is tagged as the answer; a conclusion ("the answer is B", "B is
correct"), the last one if there are several; a letter that is or begins a line of its own ("B", "(B) red",
"B. Because ..."); the one letter in brackets or after "option"; the words of one option within the text. The forms are
those that lmms-eval ranks (`mcq_extract`). Other than there, a conclusion goes before a letter at the start, since
reasons may begin with "(A) is unlikely"; an "A" before a word is an article; a letter that begins the words of an
option ("C is cooking") is none; and several letters name no option.
"""

from __future__ import annotations

import re
import string
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from agent.core.answer_rules import Declining, allowed_actions
from agent.core.protocol import Reasoned, Reply, Request, ShownFrame, citation_numbers
from agent.core.question import LATER, Note, Question, Video
from agent.core.reply_schema import NULL, Bounds, one_of
from agent.core.reply_values import Numbers, is_blank, says_nothing
from agent.errors import InvalidReply
from agent.requests.chapters import WithChapters

WORDS = "\0"
"""Stands for the words of an option in a text that is searched for letters."""
SHORTEST_WORDS = 3
"""Characters of an option that is searched for within a text: many texts contain "2" or "no" and do not mean them."""
_TAGGED = re.compile(r"<answer>(.*?)</answer>|\\boxed\{(?:\\text\{)?([^{}]*)\}", re.IGNORECASE | re.DOTALL)
_LETTER = r"[(\[]?\b([A-Z])\b(?!['’-]\w)[)\]]?"
_IS = r"(?:\s+(?:is|would be|should be|must be)\b|\s*[:=-])"
_THING = r"(?:(?:most\s+)?(?:likely|probably|clearly|therefore)\s+)?(?:(?:answer|option|choice|letter)\s+)?"
_CONCLUDED = re.compile(
    rf"\banswer(?:\s+to\s+(?:the|this)\s+question)?{_IS}?[\s:]*{_THING}{_LETTER}"
    rf"|\b(?:correct|best|right|final)\s+(?:option|choice){_IS}[\s:]*{_THING}{_LETTER}"
    rf"|\b(?:choose|chose|pick|select|go\s+with|going\s+with)\s+{_THING}{_LETTER}"
    rf"|(?<!nor )(?<!not )(?<!and )(?<!or ){_LETTER}\s+is\s+(?:the\s+)?(?:most\s+)?(?:correct|right|best|likely)\b",
    re.IGNORECASE,
)
_BEGINNING = re.compile(rf"\W*?{_LETTER}", re.IGNORECASE)
_MENTIONED = re.compile(r"[(\[]([A-Z])[)\]]|(?i:\b(?:option|choice))\s+([A-Z])\b(?!['’-]\w)")
_LISTED = re.compile(r"[(\[]([A-Z])[)\]]|\b([A-Z])[.):](?=\s)")
_ANOTHER = re.compile(r"\s*(?:,|/|&|\b(?:and|or)\b)\s*[(\[]?\b([A-Z])\b(?!['’-]\w)")
_REASON = re.compile(r",?\s+(?:because|since|as|given|based|due|is)\b", re.IGNORECASE)
_DOUBTFUL = re.compile(
    r"\b(?:not|no|never|nor|neither|cannot|without|except|whether|unclear|unknown|unsure|incorrect|wrong)\b"
    r"|n['’]t\b|insufficient",
    re.IGNORECASE,
)


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on."""

    option: str | None = Field(description="letter of the chosen option, else null")
    answer: str | None = Field(description="the answer in words, else null")
    evidence: Numbers = Field(description="numbers of the frames or notes that show the answer")
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class _Verdict(Reasoned):
    action: Literal["answer", "insufficient_evidence"] = Field(description="answer, or say that it cannot be seen")


class Conclusion(Answered, _Verdict):
    """An answer from the frames at hand, or that they do not show enough."""

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return read_decision(value)


def read_decision(value: object) -> object:
    """Complete a decision in any accepted shape: a text is an answer, missing keys are empty, "none" is no segment."""
    if isinstance(value, str) and value.strip():
        value = {"answer": value.strip(), "option": value.strip()}
    if not isinstance(value, Mapping):
        return value
    found = {str(key).casefold(): each for key, each in value.items()}
    if says_nothing(found.get("segment")):
        found.pop("segment", None)
    if "action" not in found:
        found["action"] = "explore" if "segment" in found else "answer"
    if isinstance(found["action"], str):
        found["action"] = found["action"].strip().casefold()
    blank: dict[str, object] = {"segment": None, "option": None, "answer": None, "evidence": []}
    return blank | {key: each for key, each in found.items() if each is not None}


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]
    declining: Declining = field(default="allowed", metadata=LATER)

    @property
    def actions(self) -> tuple[str, ...]:
        """Actions that are allowed now."""
        return allowed_actions(("answer", "insufficient_evidence"), self.declining)

    def bounds(self) -> Bounds:
        return {"action": one_of(self.actions), **letters(self.question, or_null=len(self.actions) > 1)}

    def example(self) -> Mapping[str, Any]:
        frames, notes = citation_numbers(self.frames, getattr(self, "notes", ()))
        return {"action": "answer", **example_answer(self.question, [*frames, *notes])}

    def check(self, reply: Conclusion) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Conclusion | None:
        decision = answer_in_words(self.question, text)
        return None if decision is None else self.Reply.model_validate(decision)


@dataclass(frozen=True, kw_only=True)
class AnswerFrames(AnswerRequest):
    """Answer from `frames`, and `notes` of the words spoken then, in one call.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "answer_frames"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(WithChapters, AnswerRequest):
    """Answer from `notes`, the findings so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Recall(AnswerRequest):
    """Answer a follow-up question from the evidence of earlier questions, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class Guess(AnswerRequest):
    """Answer from the question alone: the control that shows which questions need no video."""

    template: ClassVar[str] = "guess"
    role: ClassVar[str] = "policy"


def letters(question: Question, *, or_null: bool = True) -> Bounds:
    """Bind `option` to the letters of a question, which are the same for most questions of a benchmark."""
    if not question.options:
        return {"option": NULL}
    return {"option": one_of([letter for letter, _ in question.lettered], or_null=or_null)}


def cited_frames() -> Mapping[str, object]:
    """Say that evidence cites frames alone."""
    return {"description": "numbers of the frames that show the answer"}


def example_answer(question: Question, numbers: Sequence[int]) -> Mapping[str, Any]:
    """An example of an answer that cites one of the frames or notes with these numbers.

    Its letter differs from question to question: one that were always the same would draw a weak model's answers.
    """
    why = "The ball lies behind the goal in the last frames, and it was in front of it before."
    said: dict[str, str | None] = {"option": None, "answer": "the ball rolls behind the goal"}
    if question.options:
        letter, _ = question.lettered[zlib.crc32(question.text.encode()) % len(question.options)]
        said = {"option": letter, "answer": None}
    return {"reasoning": why, **said, "evidence": [*numbers[:1]]}


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none.

    Models that are held to a schema write "null" or "N/A" where they have no answer but have to give a text.
    """
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        named = reply.option or reply.answer
        raise InvalidReply(f"{named!r} names no option; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and is_blank(reply.answer):
        said = f"{reply.answer!r} is no answer" if (reply.answer or "").strip() else "the answer is empty"
        raise InvalidReply(f"{said}; say it in a few words")


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = named_option(text, question.options)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words.

    A letter alone in `option` is one, even if an option's own words are a letter.
    """
    letter = (reply.option or "").strip(" .()[]")
    if len(letter) == 1 and letter.upper() in string.ascii_uppercase:
        index = _index({letter.upper()}, len(question.options))
        if index is not None:
            return index
    for text in (reply.option, reply.answer):
        if text and (index := named_option(text, question.options)) is not None:
            return index
    return None


def named_option(text: str, options: Sequence[str]) -> int | None:
    """Index of the option that `text` names; None if it names none, or may mean several."""
    if tagged := _TAGGED.findall(text):
        return named_option("".join(tagged[-1]), options)
    text, *options = [re.sub(r"[*`#]", "", each).strip() for each in (text, *options)]
    folded = [_folded(option) for option in options]
    if _folded(text) in folded:
        return folded.index(_folded(text))
    lines = set().union(*(_of_line(line, folded) for line in text.splitlines()))
    bare = _without_words(text, options)
    for letters in (_concluded(bare), lines, _beginning(bare), _mentioned(bare)):
        if letters:
            return _index(letters, len(options))
    return _by_words(_folded(text), folded)


def _without_words(text: str, options: Sequence[str]) -> str:
    """The text without the words of whole options, and without letters that begin the words of one.

    EgoSchema calls the camera's wearer "C": in "C is cooking" no letter stands, whatever follows.
    """
    for option in sorted(options, key=len, reverse=True):
        words = option.strip(" .\"'").split()
        if len(words) > 1:
            text = re.sub(rf"(?<!\w){_spaced(words)}(?!\w)", WORDS, text, flags=re.IGNORECASE)
            if len(words[0]) == 1:
                text = re.sub(rf"(?<!\w){_spaced(words[:2])}(?!\w)", WORDS, text, flags=re.IGNORECASE)
    return text


def _spaced(words: Sequence[str]) -> str:
    return r"\s+".join(map(re.escape, words))


def _index(letters: set[str], count: int) -> int | None:
    """The option of a letter, if there is one letter and it is an option's."""
    index = string.ascii_uppercase.index(letters.pop()) if len(letters) == 1 else -1
    return index if 0 <= index < count else None


def _concluded(text: str) -> set[str]:
    """The letter that is concluded last; with another if the text leaves it at "B or C"."""
    for match in reversed(list(_CONCLUDED.finditer(text))):
        start, end = match.span(match.lastindex or 0)
        letter, rest = text[start:end], text[end:]
        if another := _ANOTHER.match(rest.lstrip(")]")):
            return {letter.upper(), another[1]}
        # In "B is correct" the letter does not end the match: what follows it was looked at already.
        if end < match.end() or _stands_alone(letter, rest):
            return {letter.upper()}
    return set()


def _stands_alone(letter: str, rest: str) -> bool:
    """True if a letter before the rest of a text is an option, not an article, "I", or part of a sentence."""
    if not re.match(r"\s+\w", rest) or _REASON.match(rest):
        return True
    return letter.isupper() and letter not in "AI"


def _of_line(line: str, folded: Sequence[str]) -> set[str]:
    """The letter that a line consists of, with or without its option's words; and that of another option's words."""
    match = _BEGINNING.match(line)
    if not match:
        return set()
    rest = _folded(line[match.end() :].lstrip(" .:),;-–—"))
    own = string.ascii_uppercase.index(match[1].upper())
    if not rest or folded[own : own + 1] == [rest]:
        return {match[1].upper()}
    return {match[1].upper(), string.ascii_uppercase[folded.index(rest)]} if rest in folded else set()


def _beginning(text: str) -> set[str]:
    """The letter that a text begins with, set off from what follows, and every other that is set off like it."""
    match = _BEGINNING.match(text)
    if not match:
        return set()
    rest = text[match.end() :]
    if match[0][-1] in ")]" or re.match(r"\s*[.:)]|\s+[-–—]", rest) or _REASON.match(rest):
        return {match[1].upper()} | {bracketed or other for bracketed, other in _LISTED.findall(rest)}
    return set()


def _mentioned(text: str) -> set[str]:
    return set() if _DOUBTFUL.search(text) else {one or other for one, other in _MENTIONED.findall(text)}


def _by_words(text: str, folded: Sequence[str]) -> int | None:
    """The one option whose words stand in a text; "blue" in "dark blue" is not "blue"."""
    named = []
    for option in sorted(folded, key=len, reverse=True):
        if len(option) < SHORTEST_WORDS:
            return None
        text, times = re.subn(rf"(?<!\w){re.escape(option)}(?!\w)", "\0", text)
        named += [folded.index(option)] * (times > 0)
    return named[0] if len(named) == 1 and not _DOUBTFUL.search(text) else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .\"'")
