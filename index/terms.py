"""Terms: the words of a text as a search compares them, of lines and of queries alike.

A library stores the terms of every line beside its text (the column `terms`), and a query is cut into terms by the same
rules, so that the two always meet. Letters are folded as Unicode's case folding and compatibility forms have it, marks
of Latin, Greek, Cyrillic, Hebrew and Arabic letters are left out, and words are cut where Unicode has a boundary, at
apostrophes and at underscores. Scripts without spaces, and Hangul, which joins particles to words, are cut into single
characters and pairs of neighbours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import pyarrow as pa

TERMS = "terms"
"""The column of a table of lines with the terms of each, a space between two."""
TEXTS = ("title", "text")
"""The columns that they are of."""
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\p{Hangul}"
"""The letters of scripts that are cut into characters, as a set of a regular expression."""
APOSTROPHES = "'’‘ʼʻʹ`´′ꞌ׳"
ALIKE = {
    "ı": "i",
    "ł": "l",
    "ø": "o",
    "đ": "d",
    "ħ": "h",
    "ŧ": "t",
    "ð": "d",
    "þ": "th",
    "æ": "ae",
    "œ": "oe",
    "\u0649": "\u064a",
    "\u06cc": "\u064a",
    "\u06a9": "\u0643",
    "\u0629": "\u0647",  # Arabic yeh, kaf and heh
    "\u05bb": "\u05d5",  # qubuts, where unpointed Hebrew has a vav
}
"""Letters that searches take for others, though they have no mark that could be left out."""
UNREAD = "\u0640\u05f4\u00ad\u200b\u200c\u200e\u200f\u2060\ufeff\ufe0e\ufe0f"
"""Tatweel, gershayim, soft hyphens, joiners, marks of direction and of the look of an emoji."""
SKIN_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))
LETTERS = str.maketrans({**ALIKE, **dict.fromkeys(APOSTROPHES, "'"), **dict.fromkeys(UNREAD + SKIN_TONES)})
MARKED = regex.compile(r"([\p{Latin}\p{Greek}\p{Cyrillic}\p{Hebrew}\p{Arabic}])\p{Mn}+")
THOUSANDS = regex.compile(r"(?<=\d),(?=\d{3}(?!\d))")
INITIAL = regex.compile(r"(?<!\w)(\p{L})[-\u2010\u2011](?=\p{L}{2})")
"""The hyphen of "e-mail" and "x-ray", which are written in one as well."""
TERM = regex.compile(
    rf"(?P<run>(?:[{UNSPACED}]\p{{M}}*)+)"
    r"|(?<![\w.])(?P<number>\d+(?:[.:]\d+)+)(?!\w)"
    rf"|(?P<word>[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)*)"
    r"|(?P<sign>\p{Regional_Indicator}{2}|\p{Extended_Pictographic}(?:\u200d\p{Extended_Pictographic})*)"
)
CHARACTER = regex.compile(r"\X")


def fold(text: str) -> str:
    """Return a text in the letters that searches compare: small, without marks, in one form of Unicode.

    >>> fold("L’École ＮＨＫ Ёлка")
    "l'ecole nhk елка"
    """
    if text.isascii():
        return text.lower().translate(LETTERS)
    marked = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold()).translate(LETTERS)
    return unicodedata.normalize("NFC", MARKED.sub(r"\1", marked))


def line_terms(text: str) -> list[str]:
    """Return every term by which a line is found, in order.

    >>> line_terms("The dog's ball isn't in snake_case")
    ['the', 'dog', 'ball', 'isnt', 'in', 'snake', 'case']
    >>> line_terms("図書館")
    ['図', '図書', '書', '書館', '館']
    """
    return [term for match in _matches(text) for term in _cut(match, _single_and_pairs)]


def query_terms(text: str) -> list[str]:
    """Return the terms that a query looks for, in order: of scripts without spaces the pairs alone.

    >>> query_terms("図書館 l'école")
    ['図書', '書館', 'ecole']
    """
    return [term for match in _matches(text) for term in _cut(match, _pairs)]


def _matches(text: str) -> Iterator[regex.Match[str]]:
    return TERM.finditer(INITIAL.sub(r"\1", THOUSANDS.sub("", fold(text))))


def _cut(match: regex.Match[str], cut_run: Callable[[str], list[str]]) -> list[str]:
    if match["run"]:
        return cut_run(match["run"])
    return _parts(match[0]) if match["word"] and "'" in match[0] else [match[0]]


def _parts(word: str) -> list[str]:
    """Cut a word at its apostrophes: "dog's" and "l'ecole" without the letter that stands alone, "isn't" as "isnt"."""
    if word.endswith("n't"):
        return [word.replace("'", "")]
    parts = word.split("'")
    return [part for part in parts if len(part) > 1] or parts


def _pairs(run: str) -> list[str]:
    characters = CHARACTER.findall(run)
    return [first + second for first, second in pairwise(characters)] or characters


def _single_and_pairs(run: str) -> list[str]:
    """Cut a run into characters, each followed by the pair that it begins, so that a part of it is a phrase of it."""
    characters = CHARACTER.findall(run)
    pairs = [first + second for first, second in pairwise(characters)]
    return [term for both in zip(characters, pairs, strict=False) for term in both] + characters[-1:]


def with_terms(rows: pa.Table) -> pa.Table:
    """Fill in the column `terms` of lines; rows of a table without one come back as they are."""
    at = rows.schema.get_field_index(TERMS)
    if at < 0:
        return rows
    import pyarrow as pa  # which agents, who only cut queries, do without

    texts = [rows[name].to_pylist() for name in TEXTS if name in rows.column_names]
    lines = [" ".join(line) for line in zip(*texts, strict=True)]
    terms = {line: " ".join(line_terms(line)) for line in set(lines)}  # a sign on screen is read in many frames
    return rows.set_column(at, rows.schema.field(at), pa.array([terms[line] for line in lines], pa.string()))
