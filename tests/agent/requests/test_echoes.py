"""Loops and repetitions of the instructions are no content; songs, lists and plain sentences are."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.requests.answer import check_not_echoed, check_not_looping
from tests.support.scripts import SCRIPTS, Script

INSTRUCTIONS = "Write an entry for a table of contents. First line: a title of at most eight words."
LOOPS = (
    "The title of at most eight words: " * 12,
    "The man is a man. " * 5,
    "It says that the dog is here, and that " * 4 + "the dog is here",
    "\u4e00\u4e2a\u4eba\u5728\u516c\u56ed\u91cc\u5f39\u5409\u4ed6\u3002" * 3,
)
CONTENT = (
    "Row, row, row your boat.",
    "No. " * 8,
    "It is a film that is presented to the audience. It is a film that is shown to an audience in a hall of a town.",
    "A man plays the guitar on a bench in a park, and a woman with a dog stops to listen until it begins to rain.",
)


@pytest.mark.parametrize("text", LOOPS)
def test_loops(text):
    with pytest.raises(InvalidReply, match="over and over"):
        check_not_looping(text)


@pytest.mark.parametrize("text", CONTENT)
def test_what_says_something(text):
    check_not_looping(text)
    check_not_echoed(text, INSTRUCTIONS)


@pytest.mark.parametrize("text", ["The title of at most eight words", "An ENTRY for a table of contents: kites"])
def test_repetitions_of_the_instructions(text):
    with pytest.raises(InvalidReply, match="repeats the instructions"):
        check_not_echoed(text, INSTRUCTIONS)


def test_fewer_words_in_common_are_chance():
    check_not_echoed("A table of fruit, and eight words", INSTRUCTIONS)
    with pytest.raises(InvalidReply):
        check_not_echoed("A table of fruit", "for a table of contents", words=3)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_loops_are_known_in_every_script(script: Script) -> None:
    check_not_looping(" ".join(script.lines))
    with pytest.raises(InvalidReply, match="over and over"):
        check_not_looping("".join(script.lines[:1]) * 6)
