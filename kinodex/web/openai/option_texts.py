"""Options that a question lists in its text, as evaluation kits write them."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

LINE = re.compile(r"^\s*(?:\(([A-Z])\)|([A-Z])\s*[.):])\s*(\S.*?)\s*$")
IN_LINE = re.compile(r"(?:^|(?<=\s))\(([A-Z])\)\s*")
HEADING = re.compile(
    r"^\s*(?:answer\s+)?(?:options?|choices?|candidates?|answers?|the options are)\s*:?\s*$", re.IGNORECASE
)
LABEL = re.compile(r"^\s*question\s*:\s*", re.IGNORECASE)
INSTRUCTION = re.compile(
    r"^\s*(?:(?:please|now|only|just|directly|your task is to)[\s,]+)*"
    r"(?=(?:answer|select|choose|pick|respond|reply|give|output|provide|return)\b)"
    r"(?=.*\b(?:letters?|options?|choices?|answers?|question)\b).*$|^\s*(?:the\s+)?(?:best\s+)?answer(?:\s+is)?\s*:?\s*\(?\s*$",
    re.IGNORECASE,
)
"""A line of a kit that says how to reply. Beside options it is left out: an agent is asked for an option anyway."""
ORDER = re.compile(
    r"^\s*(?:please\s+|and\s+|then\s+|also\s+|briefly\s+)*(?:explain|justify|describe|think|reason|state|cite|mention|say|tell|show|"
    r"give|include|do\s+not|don't|be\s+(?:brief|concise))\b",
    re.IGNORECASE,
)
"""A line after options that orders something: it stays with the question, and ends the options."""
WHOLE = re.compile(r"[.!?。！？][\"')\]]*\s*$")
LEAST = 2


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """The question itself, and the options that stood with it; without options the text as it was."""

    text: str
    options: tuple[str, ...] = ()


def read_options(text: str) -> WrittenQuestion:
    """Take apart a text that lists "A. ...", "B) ...", "(C) ..." from A on, in lines or "(A) ... (B) ..." in one.

    A line without a letter right after an option goes on with it, unless that has ended or the line is an order.
    Letters that come back ("A: ...", "B: ...", "A: ...") are speakers of a dialogue, and no options.
    """
    lines = [part for line in text.splitlines() for part in _split(line)]
    letters = [(match[1] or match[2], match[3]) if (match := LINE.match(line)) else None for line in lines]
    first = next((at for at, each in enumerate(letters) if each is not None and each[0] == "A"), None)
    if first is None:
        return WrittenQuestion(text.strip())
    options, after = _listed(lines[first:], letters[first:])
    labels = [each[0] for each in letters if each is not None]
    if len(options) < LEAST or len({*labels}) < len(labels):
        return WrittenQuestion(text.strip())
    words = [line for line in (*lines[:first], *after) if line.strip()]
    asked = [line for line in words if not INSTRUCTION.match(line) and not HEADING.match(line)]
    question = LABEL.sub("", "\n".join(line.strip() for line in asked or words[:1]), count=1)
    return WrittenQuestion(question.strip(), tuple(options))


def _split(line: str) -> Sequence[str]:
    """Return the parts of a line in which several options stand, "Which? (A) one (B) two"; else the line."""
    starts = [match.start() for match in IN_LINE.finditer(line)]
    letters = [match[1] for match in IN_LINE.finditer(line)]
    if len(letters) < LEAST or letters != list(string.ascii_uppercase[: len(letters)]):
        return [line]
    ends = [*starts[1:], len(line)]
    return [line[: starts[0]], *(line[start:end] for start, end in zip(starts, ends, strict=True))]


def _listed(lines: Sequence[str], letters: Sequence[tuple[str, str] | None]) -> tuple[list[str], list[str]]:
    """Options in the order of their letters, and the lines after the last of them."""
    options: list[str] = []
    is_open = True
    for at, (line, option) in enumerate(zip(lines, letters, strict=True)):
        if option is not None and len(options) < len(string.ascii_uppercase):
            if option[0] != string.ascii_uppercase[len(options)]:
                return options, list(lines[at:])
            options.append(option[1])
            is_open = True
        elif not line.strip():
            is_open = False
        elif INSTRUCTION.match(line) or not is_open or ORDER.match(line) or WHOLE.search(options[-1]):
            return options, list(lines[at:])
        else:
            options[-1] += f" {line.strip()}"
    return options, []
