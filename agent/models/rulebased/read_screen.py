"""Answers from text on screen: a question for a word, a sign or a title card, and the one option that stands there.

Other questions are not answered so: a thing that is written of need not be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agent.core.question import SCREEN_TEXT, Note, Question
from agent.models.rulebased.statements import Verdict

ASKS_FOR_TEXT = re.compile(r"\b(?:title cards?|signs?|words?|texts?|letters|written|captions?|reads?|says?)\b", re.I)
SPOKEN = re.compile(r"\b(?:said|somebody says|says that|spoken|speaks?|code word)\b", re.I)


def read_screen(question: Question, notes: Sequence[Note]) -> Verdict:
    """The option that stands on screen, if one alone does and the question asks for text.

    Without options the choice is 0 if one text alone stands there: `screen_reply` says it.
    """
    if not ASKS_FOR_TEXT.search(question.text) or SPOKEN.search(question.text):
        return Verdict()
    shown = [(at, _plain(note.text)) for at, note in enumerate(notes, 1) if note.source == SCREEN_TEXT]
    wanted = [_plain(option) for option in question.options] or list(dict.fromkeys(text for _, text in shown))
    found = {which: [at for at, text in shown if f" {each} " in f" {text} "] for which, each in enumerate(wanted)}
    held = [which for which, places in found.items() if places]
    return Verdict(held[0], 1.0, 1.0, tuple(found[held[0]])) if len(held) == 1 else Verdict()


def screen_reply(question: Question, notes: Sequence[Note], frames: int = 0) -> dict[str, Any] | None:
    """An answer as JSON values from text on screen; its evidence counts on from so many frames. None without one."""
    verdict = read_screen(question, notes)
    if verdict.choice is None:
        return None
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = question.options[verdict.choice] if question.options else notes[verdict.evidence[0] - 1].text
    evidence = tuple(frames + at for at in verdict.evidence)
    return {"action": "answer", "option": letter, "answer": text, "evidence": evidence}


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
