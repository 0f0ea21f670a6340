"""Reasons in plain words, for hits of every kind and for several at once; quoted texts are cut around the word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.index.rows import Hit
from kinodex.web.search import WIDTH, Moment, excerpt, why

FRAME = Hit("v", 30.0, 31.0, 30, 0.3, None, "frame")
LINE = Hit("v", 31.5, 33.0, None, 4.0, "we are at sea", "transcript")
CAPTION = Hit("v", 20.0, 40.0, None, 2.0, "a boat at sea", "caption")
SHOWN = Hit("v", 31.0, 35.0, None, 3.0, "TO THE SEA", "text")
DETECTION = Hit("v", 30.0, 31.0, 30, 0.914, "boat", "detection")


@pytest.mark.parametrize(
    ("moment", "says"),
    [
        (Moment(FRAME, frame=FRAME), "looks like the words"),
        (Moment(LINE, line=LINE), "said at 0:31: we are at sea"),
        (Moment(LINE, line=replace(LINE, speaker="Anna")), "said at 0:31 by Anna: we are at sea"),
        (Moment(CAPTION, caption=CAPTION), "described: a boat at sea"),
        (Moment(SHOWN, shown=SHOWN), "on screen at 0:31: TO THE SEA"),
        (Moment(FRAME, frame=FRAME, shown=SHOWN), "both seen and shown as text: TO THE SEA"),
        (Moment(DETECTION, detection=DETECTION), "a detector found: boat, 91% sure"),
        (Moment(FRAME, frame=FRAME, line=LINE), "both seen and said: we are at sea"),
        (Moment(FRAME, FRAME, LINE, CAPTION), "seen, said and described: we are at sea"),
    ],
)
def test_a_reason_names_what_found_the_moment(moment, says):
    assert why(moment, "sea") == says


def test_a_picture_is_like_a_frame_or_a_picture_or_only_somewhat():
    moment = Moment(FRAME, frame=FRAME)
    assert why(moment, "", "frame") == "looks like that frame"
    assert why(moment, "", "picture", 0.4) == "looks somewhat like the picture"


@pytest.mark.parametrize("word", ["first", "middle", "last"])
def test_an_excerpt_holds_the_word_and_is_short(word):
    text = "first " + "filler " * 40 + "middle " + "filler " * 40 + "last"
    part = excerpt(text, f"the {word.upper()}")
    assert word in part.split() and len(part) <= WIDTH + 4
    assert part.startswith("…") == (word != "first") and part.endswith("…") == (word != "last")


def test_an_excerpt_of_one_endless_word_is_cut_and_of_none_is_empty():
    assert excerpt("x" * 500, "y") == "x" * WIDTH + " …"
    assert excerpt(None, "y") == "" and excerpt("a  short\nline", "y") == "a short line"
