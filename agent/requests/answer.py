"""Requests for an answer, and how a reply is read: an option, its words, the evidence, or that there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

from pydantic import Field

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import (
    INSUFFICIENT,
    Note,
    Question,
    R,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Video,
    allowed_actions,
    citation_numbers,
    read_as,
)
from kinodex.agent.replies import NULL, REASONING, Bounds, Numbers, exactly, is_blank, one_of, says_nothing
from kinodex.agent.requests.named_option import lone_letter, named_option, says_another
from kinodex.index.terms import query_terms


@dataclass(frozen=True, kw_only=True)
class OfRun(Request[R]):
    """A request about a question and its videos; it lists scenes or chapters, if a run reads them (`agent.tree`)."""

    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    chapters: tuple[Note, ...] = ()


# Requests for the answer, with which every agent ends, and their replies.
#
# A bare text ("B") is accepted as a reply too (`named_option`).


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on."""

    option: str | None = Field(description="letter of the chosen option, else null")
    answer: str | None = Field(description="the answer in words, else null")
    evidence: Numbers = Field(description="numbers of the frames or notes that show the answer")
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class _Verdict(Reasoned):
    action: Literal["answer", "insufficient_evidence"] = Field(description="answer, or say that it cannot be seen")


def read_decision(value: object) -> object:
    """Complete a decision in any accepted shape: a text is an answer, missing keys are empty, "none" is no segment.

    One with a segment and an answer, but no action, may be either: its action stays missing.
    """
    if isinstance(value, str) and value.strip():
        value = {"answer": value.strip(), "option": value.strip()}
    if not isinstance(value, Mapping):
        return value
    found = {str(key).casefold(): each for key, each in value.items()}
    if says_nothing(found.get("segment")):
        found.pop("segment", None)
    if "action" not in found and not ("segment" in found and says_answer(found)):
        found["action"] = "explore" if "segment" in found else "answer"
    if isinstance(found.get("action"), str):
        found["action"] = found["action"].strip().casefold()
    blank: dict[str, object] = {"segment": None, "option": None, "answer": None, "evidence": []}
    return blank | {key: each for key, each in found.items() if each is not None}


def says_answer(found: Mapping[str, object]) -> bool:
    return not (says_nothing(found.get("option")) and says_nothing(found.get("answer")))


class Conclusion(Answered, _Verdict):
    """An answer from the frames at hand, or that they do not show enough."""

    _accept = read_as(read_decision)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]
    declining: Declining = "allowed"

    @property
    def actions(self) -> tuple[str, ...]:
        return allowed_actions(("answer", "insufficient_evidence"), self.declining)

    def bounds(self) -> Bounds:
        return {"action": one_of(self.actions), **letters(self.question, or_null=len(self.actions) > 1)}

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
    notes: tuple[Note, ...] = ()

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(AnswerRequest):
    """Answer from `notes`, the findings so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]
    chapters: tuple[Note, ...] = ()

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class Recall(AnswerRequest):
    """Answer a follow-up question from the evidence of earlier questions, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]

    def example(self) -> Mapping[str, Any]:
        """A dry run assumes that the earlier evidence tells nothing, where a reply may say so."""
        if self.declining != "allowed":
            return super().example()
        return {"reasoning": "", "action": INSUFFICIENT, "option": None, "answer": None, "evidence": []}


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


def weighed(question: Question) -> Bounds:
    """Give the last reply of a run room for what speaks for and against each option."""
    about = "for each option in a few words what speaks for it and what against it; then which one is left"
    return {"reasoning": {"description": about}} if question.options else {}


def cited_frames() -> Mapping[str, object]:
    return {"description": "numbers of the frames that show the answer"}


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none.

    Models that are held to a schema write "null" or "N/A" where they have no answer but have to give a text.
    """
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        raise InvalidReply(f"{_said(question, reply)}; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and is_blank(reply.answer):
        said = f"{reply.answer!r} is no answer" if (reply.answer or "").strip() else "the answer is empty"
        raise InvalidReply(f"{said}; say it in a few words")


def _said(question: Question, reply: Answered) -> str:
    alone = reply.model_copy(update={"answer": None})
    if chosen_option(question, alone) is not None:
        return f"option {reply.option!r} and answer {reply.answer!r} do not say the same"
    return f"{(reply.option or reply.answer)!r} names no option"


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = named_option(text, question.options)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words; None if its parts disagree.

    A letter alone in `option` is one, even if an option's own words are a letter.
    """
    options = question.options
    answer = None if is_blank(reply.answer) else reply.answer
    in_words = None if answer is None else named_option(answer, options)
    if says_nothing(reply.option) and (reply.option is None or named_option(reply.option, options) is None):
        return in_words
    option = reply.option or ""
    letter = lone_letter(option)
    index = letter if letter is not None and letter < len(options) else named_option(option, options)
    if index is None or answer is None or index in (in_words, lone_letter(answer)):
        return index
    return None if in_words is not None or says_another(answer, options, index) else index


# Replies in parts, one for each segment, frame or note: those left out are asked for alone, and two replies are one.


class InParts(Request[R]):
    """A request whose reply has a part for each of some things, by its number; those left out are asked for alone."""

    parts: ClassVar[tuple[str, str, str]]
    """The request's field of the things, the reply's of its parts, and a part's of the number."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the things: of frames those they are shown with, of segments their own, else their places."""
        if self.parts[0] == "frames":
            return citation_numbers(self.frames)[0]
        return [getattr(each, "number", at) for at, each in enumerate(getattr(self, self.parts[0]), start=1)]

    def told(self, reply: R) -> dict[int, list[Any]]:
        """The parts of a reply by their number; those that say the same of one, whatever their reasons, are one."""
        said: dict[int, list[Any]] = {}
        for part in getattr(reply, self.parts[1]):
            same = said.setdefault(getattr(part, self.parts[2]), [])
            if all(part.model_dump(exclude={REASONING}) != each.model_dump(exclude={REASONING}) for each in same):
                same.append(part)
        return said

    def bounds(self) -> Bounds:
        return {self.parts[1]: exactly(len(self.numbers))}

    def interpret(self, reply: R) -> R:
        """Keep one part for each known number, none of which several differ; all if none is left: `check` says why."""
        known = self.numbers
        kept = [each[0] for number, each in self.told(reply).items() if number in known and len(each) == 1]
        return reply.model_copy(update={self.parts[1]: kept}) if kept else reply

    def check(self, reply: R) -> None:
        """A reply may leave things out, but not have parts of unknown ones, of one twice, or none at all."""
        numbers = [getattr(part, self.parts[2]) for part in getattr(reply, self.parts[1])]
        check_numbers(self.parts[2], numbers, self.numbers)

    def missing(self, reply: R) -> Self | None:
        there, things = self.told(reply), getattr(self, self.parts[0])
        rest = tuple(each for number, each in zip(self.numbers, things, strict=True) if number not in there)
        return cast(Self, replace(cast(Any, self), **{self.parts[0]: rest})) if rest else None

    def join(self, reply: R, rest: R) -> R:
        """The parts of two replies in the order of their numbers; the second request had numbers of its own."""
        _, listed, name = self.parts
        there, asked, order = self.told(reply), self.missing(reply), list(self.numbers)
        left = [number for number in order if number not in there]
        own = dict(zip(asked.numbers if asked else (), left, strict=True))
        more = [part.model_copy(update={name: own[getattr(part, name)]}) for part in getattr(rest, listed)]
        parts = sorted([*getattr(reply, listed), *more], key=lambda part: order.index(getattr(part, name)))
        return reply.model_copy(update={listed: parts})


def check_numbers(thing: str, numbers: Sequence[int], known: Sequence[int]) -> None:
    """Raise `InvalidReply` for parts of a reply that are of no known number, of one twice, or for none at all."""
    unknown = [number for number in numbers if number not in known]
    if unknown:
        raise InvalidReply(f"there is no {thing} {unknown[0]}; the numbers are {_listed(known)}")
    if len(set(numbers)) < len(numbers):
        raise InvalidReply(f"a {thing} is there twice; give each once")
    if not numbers and known:
        raise InvalidReply(f"no {thing} is there; give one for each of {_listed(known)}")


def _listed(known: Sequence[int]) -> str:
    if len(known) > 2 and list(known) == list(range(known[0], known[0] + len(known))):
        return f"{known[0]} to {known[-1]}"
    return ", ".join(map(str, known))


# Refusals in words: a model that will not look writes that it is sorry where a description was asked for.
#
# Such a text fits the schema of a caption. Taken for one, it would be stored, searched and cited.

_REFUSALS = r"""
(?:so+ )?sorry\b|apolog|unfortunately\b|regrettably\b|unable to\b|as an? (?:ai|artificial|(?:large )?language model)\b
(?:i|we)(?:['’]?(?:m|re)|\sam|\sare)\s+(?:(?:very|so|truly)\s+)?(?:sorry|afraid|unable|not (?:able|allowed|comf))
(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|(?:must |have to |\w+fully )*(?:decline|refuse)|regret)\b
(?:i|we)\s+(?:don['’]?t|do not)\s+(?:feel|see any (?:image|picture|frame)|have (?:access|the ability))
(?:there (?:is|are) )?no (?:image|picture|frame)s? (?:(?:was|were|is|are) )?(?:provided|attached|given|to (?:see|desc))
(?:this|the|your|that) (?:request|content|image|picture|frame)s? (?:\w+ ){0,3}?(?:violat|cannot be (?:desc|proc))
(?:es )?tut mir\b.{0,8}leid|leider\b|entschuldig|ich (?:kann|darf|bin nicht)\b|als (?:ki|sprachmodell)\b
(?:je suis )?désolée?\b|je (?:ne (?:peux|suis pas)|regrette|m['’]excuse)|malheureusement\b|en tant qu\W?(?:ia|e mod)
lo (?:siento|lamento)|lamento\b|lamentablemente\b|no (?:puedo|me es posible|es posible)\b|disculp
desculp|sinto muito|não (?:posso|consigo)\b|infelizmente\b
mi dispiace|spiacente|non (?:posso|sono in grado)\b|purtroppo\b
het spijt|helaas\b|ik kan\b|przepraszam|niestety\b|nie mogę|üzgünüm|maalesef|jag kan inte|tyvärr
извин|простите\b|к сожалению|я не (?:могу|вижу)\b|на жаль|عذر|آسف|أعتذر|لا (?:أستطيع|يمكنني)|माफ़|क्षमा करें|मुझे खेद
(?:很|非常)?(?:抱歉|遗憾)|[对對]不起|我(?:无法|不能|無法)|作[为為]一?[个個]?(?:AI|人工|语言|大)|申し訳|すみません|ごめん|残念|죄송|미안
"""
_REFUSAL = re.compile(rf"\W*(?:(?:well|oh|hmm|but)\W+)?(?:{_REFUSALS.strip().replace(chr(10), '|')})", re.IGNORECASE)


def check_not_refused(text: str) -> None:
    """Raise `InvalidReply` for a description that begins as refusals do in some languages; nothing seen is told so."""
    if _REFUSAL.match(text):
        raise InvalidReply("that is a refusal, not a description; say what is seen, and leave out what you may not say")


# Replies without content: the same words over and over, or the words of the request. Small models write both.
#
# Such a text fits the schema of a description. Taken for one, it would be stored, searched and cited.

LEAST_WORDS = 16
"""A shorter text is not looked at for loops: a song may well say "row, row, row your boat"."""
LEAST_NEW = 0.5
"""Share of runs of `LOOPED` words that are new in a text that says something; in loops of small models it is 0.03 to
0.3 (SmolLM2-135M), in sentences above 0.65."""
LOOPED = 4
ECHOED = 5
"""Words in a row that a description and its instructions do not share by chance."""


def check_not_looping(text: str) -> None:
    """Raise `InvalidReply` for a text that repeats itself more than it says anything."""
    words = _words(text)
    runs = _runs(words, LOOPED)
    if len(words) >= LEAST_WORDS and len(set(runs)) < LEAST_NEW * len(runs):
        raise InvalidReply("it says the same words over and over; say each thing once")


def check_not_echoed(text: str, instructions: str, words: int = ECHOED) -> None:
    """Raise `InvalidReply` for a text that has so many words in a row from the instructions for it."""
    if not set(_runs(_words(text), words)).isdisjoint(_runs(_words(instructions), words)):
        raise InvalidReply("it repeats the instructions; say what is known of the part instead")


def _words(text: str) -> list[str]:
    return query_terms(text)


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
