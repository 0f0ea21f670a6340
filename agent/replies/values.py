"""Numbers, times and lists of numbers as models write them: read where there is no doubt what is meant, else invalid.

JSON numbers stay as they are. Of texts are read: one number with words around it ("Segment 3", "about 40"), a number
word ("three"), a share of a scale ("4/5", "85%", "8 out of 10"), and a time as a clock shows it ("10:00", "1:02:03").
`NaN`, infinities, truth values, texts with several numbers and those that deny one ("not segment 3") are refused:
which one is meant would be a guess.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, Field

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
BLANK = ("", "null", "n/a")
"""Texts that stand for a text that is missing. "None" and "unknown" do not: how many boats there are, who wrote it."""
NOTHING = (*BLANK, "none")
"""Texts that stand for a number, a name or a list that is missing."""
MOST_CHARACTERS = 200
"""Of a text that may say a number."""
UNIT_S = {"h": 3600, "m": 60, "s": 1}
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?(?![\d])", re.IGNORECASE)
_SHARE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:/|out\s+of|of)\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_PERCENT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:%|per\s?cent\b)", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:segment|cluster|frame|note|clip|option|number|no\.|#)[\s_:#]*(\d+)\b", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):([0-5]?\d(?:\.\d+)?)")
_UNITS = re.compile(
    r"(?:(\d+(?:\.\d+)?)\s*(?:h|hours?|hrs?))?\s*(?:(\d+(?:\.\d+)?)\s*(?:m|min|minutes?|mins?))?\s*"
    r"(?:(-?\d+(?:\.\d+)?)\s*(?:s|sec|secs|seconds?)?)?",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|neither|nor|except|without|rather than|instead of)\b|n't\b", re.IGNORECASE)
_LISTED = re.compile(r"(?:[\[\(<]|\b(?:segments?|frames?|notes?|clips?|clip_|lines?|numbers?|and)|[\s,;#_>\)\]]|\d)*")


def whole_number(value: object) -> object:
    """Return the whole number that a value says, as of a segment or a level: 3 for "Segment 3", "three" or 3.0."""
    text = _text_of(value)
    if text is None:
        return value
    if named := set(_NAMED.findall(text)):
        return _only_value(text, named)
    share = _SHARE.search(text)
    return _only_value(text, {share[1]}) if share and len(_NUMBER.findall(text)) == 2 else _only_number(text)


def score(value: object) -> object:
    """Return a score on a scale from 0 to 100: 85 for "85%", "85/100" or "8.5 out of 10"."""
    return on_scale(value, 100.0)


def confidence(value: object) -> object:
    """Return a confidence from 0 to 1: 0.85 for "85%" or "8.5/10"."""
    return on_scale(value, 1.0)


def on_scale(value: object, most: float) -> object:
    """Return a number on a scale from 0 to `most`.

    Only a number that is marked as a share or percentage is converted.
    """
    text = _text_of(value)
    if text is None:
        return value
    if percent := _PERCENT.findall(text):
        return most * float(_only_value(text, set(percent))) / 100
    share = _SHARE.search(text)
    if share and float(share[2]) > 0 and len(_NUMBER.findall(text)) == 2:
        return most * float(share[1]) / float(share[2])
    return _only_number(text)


def seconds(value: object) -> object:
    """Return a time in seconds: 600 for "10:00", 3723 for "1:02:03", 90 for "1m30s" or "90 s".

    Numbers stay as they are.
    """
    text = _text_of(value)
    if text is None:
        return value
    text = text.strip("\"'<>[]()~ ")
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, left_s = clock.groups()
        return 3600 * int(hours or 0) + 60 * int(minutes) + float(left_s)
    units = _UNITS.fullmatch(text)
    if units and any(units.groups()):
        return sum(float(each) * UNIT_S[unit] for each, unit in zip(units.groups(), "hms", strict=True) if each)
    return _only_number(text)


def whole_numbers(value: object) -> object:
    """Return a list of whole numbers from one number, or a text such as "1, 2 and 4" or "<clip_3>, <clip_4>"."""
    if says_nothing(value):
        return []
    text = _text_of(value)
    if text is not None:
        if not _LISTED.fullmatch(text.casefold()):
            raise ValueError(f"{text[:60]!r} is no list of numbers; write it as [1, 2]")
        return [int(each) for each in re.findall(r"\d+", text)]
    return [whole_number(each) for each in value] if isinstance(value, list | tuple) else [whole_number(value)]


def says_nothing(value: object) -> bool:
    """Return True for null, also where it is written as a text: "", "null", "none"."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING)


def is_blank(text: str | None) -> bool:
    """Return True for a text in which nothing is said.

    Such is null, also where it is written as a text, in quotes or with a stop.
    """
    return text is None or text.strip(" \t\r\n.\"'`<>[]()").casefold() in BLANK


def _text_of(value: object) -> str | None:
    """Return a text that may say a number, without spaces around it; None for what is no text."""
    if isinstance(value, bool):
        raise ValueError("give a number, not true or false")
    if not isinstance(value, str):
        return None
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"{len(value)} characters are no number; give only the number")
    if _DENIED.search(value):
        raise ValueError(f"{value[:60]!r} denies something; give the number that is meant")
    return value.strip()


def _only_number(text: str) -> str:
    found = set(_NUMBER.findall(text))
    words = {str(NUMBER_WORDS.index(word)) for word in re.findall(r"[a-z]+", text.casefold()) if word in NUMBER_WORDS}
    return _only_value(text, found or words)


def _only_value(text: str, found: set[str]) -> str:
    if len(found) != 1:
        raise ValueError(f"{text[:60]!r} holds {'several numbers' if found else 'no number'}; give one")
    [number] = found
    if not math.isfinite(float(number)):
        raise ValueError(f"{text[:60]!r} is too large")
    return number


WholeNumber = Annotated[int, BeforeValidator(whole_number)]
"""A whole number, as of a segment or a frame."""
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), BeforeValidator(score)]
"""A score from 0 to 100."""
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(confidence)]
"""A confidence from 0 to 1."""
Seconds = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(seconds)]
"""A time in seconds; a clock time counts from 0."""
Numbers = Annotated[list[int], BeforeValidator(whole_numbers)]
"""Numbers of frames, notes or clips."""
