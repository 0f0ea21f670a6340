"""Scripts of languages, and of letters: which of them a reader of text knows, and which of them are meant."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from kinodex.pipeline.errors import WrongModel

_LANGUAGES_OF = (
    (("LATIN",), "af az bs ca cs cy da de en es et eu fi fr ga gl hr hu id is it lb lt lv ms mt nl no pl pt ro sk"),
    (("LATIN",), "sl sq sv sw tl tr vi"),
    (("CYRILLIC",), "be bg kk mk mn ru sr uk"),
    (("ARABIC",), "ar fa ug ur"),
    (("DEVANAGARI",), "hi mr ne sa"),
    (("GREEK",), "el"),
    (("HEBREW",), "he"),
    (("CJK", "HIRAGANA", "KATAKANA"), "ja"),
    (("HANGUL",), "ko"),
    (("TAMIL",), "ta"),
    (("TELUGU",), "te"),
    (("THAI",), "th"),
    (("CJK", "BOPOMOFO"), "zh"),
)
LANGUAGES = {language: scripts for scripts, languages in _LANGUAGES_OF for language in languages.split()}
"""Languages by ISO 639-1, with the names that Unicode gives their letters. Latin letters are everywhere."""
LEAST_LETTERS = 10
"""Letters of a script from which on a model reads it: the dictionary of a Chinese one holds some Greek signs."""


def check_languages(languages: Sequence[str], characters: str, model: str) -> None:
    """Raise WrongModel for a language that is not known here, or whose script a model does not read."""
    unknown = [each for each in languages if each not in LANGUAGES]
    if unknown:
        raise WrongModel(f"got language {unknown[0]!r}; give codes of two letters, of {', '.join(sorted(LANGUAGES))}")
    counts = Counter(map(script_of, set(characters)))
    for language in languages:
        if counts[LANGUAGES[language][0]] < LEAST_LETTERS:
            reads = sorted(each for each in LANGUAGES if counts[LANGUAGES[each][0]] >= LEAST_LETTERS)
            raise WrongModel(
                f"got language {language!r}, whose letters {model} does not read; it reads {', '.join(reads)}: give "
                "--model FOLDER with a recogniser for it"
            )


@lru_cache(maxsize=32_768)
def script_of(letter: str) -> str:
    """Script of a letter, the first word of its name in Unicode; empty for what is no letter."""
    return unicodedata.name(letter, "").split(" ", 1)[0].split("-")[0] if letter.isalpha() else ""
