"""Loops of a speech model are known by how well they compress; songs and lists are none."""

from __future__ import annotations

import pytest

from kinodex.pipeline.models.speech import is_loop
from tests.support.scripts import SCRIPTS, Script


@pytest.mark.parametrize(
    "text",
    [
        "late late late late late late late late late",  # Whisper tiny.en, of a talk in an echoing room
        "during the late late late late late late late late late late late",
        "I'm going to go to the next video. " * 6,
    ],
)
def test_loops(text):
    assert is_loop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Goal! Goal! Goal! Goal! Goal!",
        "la la la la la la la la la la",
        "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily, life is but a dream.",
        "Thank you. Thank you. Thank you very much. Thank you. Thank you.",
        "We simply found that above this threshold the quality of the image text matching seems to be pretty good.",
    ],
)
def test_what_people_say_and_sing(text):
    assert not is_loop(text)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_is_no_loop(script: Script) -> None:
    """UTF-8 has three bytes for a character of Hindi, Tamil or Georgian, which alone compress well."""
    assert not is_loop(" ".join(script.lines))
    assert is_loop(f"{script.lines[0]} " * 8)
