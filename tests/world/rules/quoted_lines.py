"""Answers from quoted lines: of text on screen and of speech, the one option that stands there word by word.

Text on screen answers a question for a word, a sign or a title card; a spoken line one that names somebody, or what
a code word is for, that the line names too. Other questions are not answered so: a thing that is spoken or written
of need not be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from tests.world.rules.statements import Verdict

ASKS_FOR_TEXT = re.compile(r"\b(?:title cards?|signs?|words?|texts?|letters|written|captions?|reads?|says?)\b", re.I)
NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]+\b")
CODE = re.compile(r"\bcode word for (.+?)\?$")
TALK = re.compile(r"\bcode word\b|\bplans? to go\b|\bwhy was [A-Z]\w+ late\b", re.I)
"""Questions of what is only spoken of: no picture shows a plan, a reason or a password."""
SPOKEN = re.compile(r"\b(?:said|somebody says|says that|spoken|speaks?|code word)\b", re.I)


def read_screen(question: Question, notes: Sequence[Note]) -> Verdict:
    """Return the option that stands on screen, if one alone does and the question asks for text.

    Without options the choice is 0 if one text alone stands there: `screen_reply` says it.
    """
    lines = [(at, note.source, f" {plain(note.text)} ") for at, note in enumerate(notes, 1)]
    subjects = [*NAME.findall(question.text), *CODE.findall(question.text)] or TALK.findall(question.text)
    if names := {plain(name) for name in subjects}:
        said = [(at, text) for at, source, text in lines if source == "speech"]
        found = [(at, text) for at, text in said if any(f" {name} " in text for name in names)]
        options = question.options
    elif not ASKS_FOR_TEXT.search(question.text) or SPOKEN.search(question.text):
        return Verdict()
    else:
        found = [(at, text) for at, source, text in lines if source == "screen_text"]
        options = question.options or tuple(dict.fromkeys(text for _, text in found))
    places = [tuple(at for at, text in found if f" {plain(option)} " in text) for option in options]
    held = [which for which, numbers in enumerate(places) if numbers]
    return Verdict(held[0], 1.0, 1.0, places[held[0]]) if len(held) == 1 else Verdict()


def is_talk(question: Question) -> bool:
    """Return True if a question asks for what only words tell, whatever its options look like in pictures."""
    return bool(question.options and TALK.search(question.text))


def screen_reply(question: Question, notes: Sequence[Note], frames: int = 0) -> dict[str, Any] | None:
    """Return an answer as JSON values from text on screen.

    Its evidence counts on from this many frames. Return None without one.
    """
    verdict = read_screen(question, notes)
    if verdict.choice is None:
        return None
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = question.options[verdict.choice] if question.options else notes[verdict.evidence[0] - 1].text
    evidence = tuple(frames + at for at in verdict.evidence)
    return {"action": "answer", "option": letter, "answer": text, "evidence": evidence}


def plain(text: str) -> str:
    """Return the words of a text in lower case, without marks."""
    return " ".join(re.findall(r"\w+", text.casefold()))
