"""The option that a text names: its letter, its words, or either of them after "Answer:" or in <answer>.

Anything else is no answer, and is asked again: what a sentence means by a letter would be a guess.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

_ALIKE = str.maketrans("“”„«»「」『』‘’", '"""""""""\'\'', "*`")
_AROUND = " .。:()[]{}\"'"
"""Characters around a letter, or the words of an option, that say nothing."""
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_LAST_LINE = re.compile(r"^\W*answer\s*:\s*(\S.*)\Z", re.IGNORECASE | re.MULTILINE)
_LETTERED = re.compile(r"[(\[]?([A-Z])[)\]]?\s*[.:)–—-]?\s+(.*)", re.IGNORECASE | re.DOTALL)


def named_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a text names; None if it names none, or two."""
    plain = _plain(text)
    if tagged := _TAGGED.findall(plain):
        return _exact(tagged[-1], options)
    found = _exact(plain, options)
    answer = _LAST_LINE.search(plain)
    return _exact(answer[1], options) if found is None and answer else found


def lone_letter(text: str) -> int | None:
    """Return the place in the alphabet of a letter that is a whole text, in whatever brackets or quotes; else None."""
    letter = _plain(text).strip(_AROUND).upper()
    return string.ascii_uppercase.index(letter) if len(letter) == 1 and letter in string.ascii_uppercase else None


def _exact(text: str, options: Sequence[str]) -> int | None:
    """Read the words of an option, its letter, or its letter with its words."""
    words = [_folded(_plain(option)) for option in options]
    if (said := _folded(text)) in words:
        return words.index(said)
    letter = lone_letter(text)
    if letter is None and (both := _LETTERED.fullmatch(text.strip())):
        letter = lone_letter(both[1])
        if letter is not None and words[letter : letter + 1] != [_folded(both[2])]:
            return None
    return letter if letter is not None and letter < len(options) else None


def _plain(text: str) -> str:
    """Return a text in one form: full-width letters and curly quotes as plain ones, without Markdown."""
    return unicodedata.normalize("NFKC", text).translate(_ALIKE).strip()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_AROUND)
