"""Requests to describe videos: what is empty, a refusal, a loop or a repetition of the instructions is no reply."""

from __future__ import annotations

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.requests.describe import DescribeSegment, Description, Summarize, Summary
from kinodex.agent.requests.repetition import check_not_echoed, check_not_looping
from kinodex.agent.requests.summarize_part import PartSummary, SummarizePart
from tests.support.scripts import SCRIPTS

VIDEO = "a" * 32
PART = Segment(1, VIDEO, 10.0, 40.0)


def test_replies_that_cannot_be_used() -> None:
    with pytest.raises(InvalidReply, match="the caption is empty"):
        DescribeSegment(segment=PART, frames=()).check(Description(caption=" ", confidence=50))
    with pytest.raises(InvalidReply, match="the summary is empty"):
        Summarize(videos=(Video(VIDEO, "kites", 0.0, 60.0),), notes=()).check(Summary(summary="\n"))
    notes = (Note(VIDEO, 10.0, 14.0, "captions", "a red kite"), Note(VIDEO, 12.0, 13.5, "speech", "It flies!"))
    scene = SummarizePart(part=PART, level="scene", notes=notes)
    for title, summary, problem in (
        (" ", "Kites fly.", "the title is empty"),
        ("Kites", "\n", "the summary is empty"),
        ("I'm sorry, I cannot help with that.", "Kites fly.", "refusal"),
        ("Kites " * 30, "Kites fly.", "at most eight words"),
        ("Kites", "Kites fly over the sea. " * 100, "one to three sentences"),
        ("Kites", "The kites fly over it. " * 6, "over and over"),
        ("At most eight words that tell this part", "Kites fly.", "repeats the instructions"),
        ("Kites", "One to three sentences.", "repeats the instructions"),
    ):
        with pytest.raises(InvalidReply, match=problem):
            scene.check(PartSummary(title=title, summary=summary))


def test_loops_and_repetitions_of_the_instructions_are_known_in_every_script() -> None:
    instructions = "Write an entry for a table of contents. First line: a title of at most eight words."
    for text in ("The title of at most eight words", "An ENTRY for a table of contents: kites"):
        with pytest.raises(InvalidReply, match="repeats the instructions"):
            check_not_echoed(text, instructions)
    for script in SCRIPTS:
        check_not_looping(" ".join(script.lines))
        with pytest.raises(InvalidReply, match="over and over"):
            check_not_looping("".join(script.lines[:1]) * 6)
