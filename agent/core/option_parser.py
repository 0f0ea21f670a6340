"""Read the option that a text names; it is never guessed.

From the surest sign to the least sure: the words of one option alone; what is tagged as the answer; a conclusion ("the
answer is B", "B is correct"), the last one if there are several; a letter that is or begins a line of its own ("B",
"(B) red", "B. Because ..."); the one letter in brackets or after "option"; the words of one option within the text. The
forms are those that lmms-eval ranks (`mcq_extract`). Other than there, a conclusion goes before a letter at the start,
since reasons may begin with "(A) is unlikely"; an "A" before a word is an article; and several letters name no option.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

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


def named_option(text: str, options: Sequence[str]) -> int | None:
    """Index of the option that `text` names; None if it names none, or may mean several."""
    if tagged := _TAGGED.findall(text):
        return named_option("".join(tagged[-1]), options)
    text = re.sub(r"[*`#]", "", text).strip()
    folded = [_folded(option) for option in options]
    if _folded(text) in folded:
        return folded.index(_folded(text))
    lines = set().union(*(_of_line(line, folded) for line in text.splitlines()))
    for letters in (_concluded(text), lines, _beginning(text), _mentioned(text)):
        if letters:
            return _index(letters, len(options))
    return _by_words(_folded(text), folded)


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
    if not rest:
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
