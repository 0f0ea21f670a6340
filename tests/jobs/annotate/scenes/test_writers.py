"""Models that write titles: what a local one says is read with patience, an endpoint is asked once more."""

from __future__ import annotations

import pytest

from kinodex.agent.protocol import Note, Segment
from kinodex.agent.requests.describe import SummarizePart
from kinodex.jobs.add.endpoint import open_model_thread
from kinodex.jobs.add.summaries import Written, endpoint_writer, local_writer, open_writer, read_entry
from kinodex.pipeline.scenes import PROMPT
from tests.support.servers.chat_server import ChatServer, cut_off, failing, in_turn
from tests.support.servers.wire import role

GOOD = {"title": "Kites over the sea", "summary": "Red kites fly. It is windy."}


def part(number: int = 0, *texts: str) -> SummarizePart:
    notes = tuple(Note("v", float(n), n + 1.0, "caption", text) for n, text in enumerate(texts or ("a red kite",)))
    return SummarizePart(part=Segment(number, "v", 0.0, 30.0), level="scene", notes=notes)


@pytest.mark.parametrize(
    "text",
    [
        "Kites over the sea\nRed kites fly. It is windy.",
        "Title: Kites over the sea\n\nSummary: Red kites fly.\nIt is windy.\n",
        '**Title:** "Kites over the sea"\n**Summary**: Red kites fly. It is windy.',
        "# Kites over the sea\nRed kites fly. It is windy.",
    ],
)
def test_a_title_stands_in_the_first_line(text):
    written = read_entry(part(), text)
    assert (written.title, written.text) == ("Kites over the sea", "Red kites fly. It is windy.")


@pytest.mark.parametrize("text", ["", "Kites over the sea", "I'm sorry, I cannot do that.\nNo.", "word " * 40 + "\nx"])
def test_other_replies_have_no_title(text):
    assert read_entry(part(), text).title == ""


SMOLLM2 = {  # replies of SmolLM2-135M-Instruct on ../shared/media/clips, cut off at 128 tokens
    "the instructions": "The title of at most eight words:\n\n" * 13,
    "the instructions, then more": 'The title of at most eight words: "The Story of a Life\nA man tells his life.',
}


@pytest.mark.parametrize("text", SMOLLM2.values(), ids=SMOLLM2)
def test_repetitions_of_the_prompt_have_no_title(text):
    assert read_entry(part(), text, False, PROMPT.read_text()) == Written()


def test_a_reply_that_breaks_off_is_kept_up_to_its_last_whole_sentence():
    written = read_entry(part(), "Kites over the sea\nRed kites fly. It is win", False)
    assert (written.title, written.text) == ("Kites over the sea", "Red kites fly.")
    assert read_entry(part(), "Kites over the sea\nRed kites that", False) == Written()
    assert read_entry(part(), "Kites over the s", False) == Written()
    assert read_entry(part(), "Kites over the sea\nRed kites that", True).text == "Red kites that"


@pytest.mark.parametrize(
    "bad", [{"title": "Kites", "summary": "Kites fly in it. " * 9}, {"title": "A", "summary": " "}]
)
def test_an_endpoint_that_loops_or_says_nothing_is_asked_again_and_then_left(kinodex, bad):
    with (
        ChatServer(in_turn(bad, GOOD, bad, cut_off(str(bad)), bad)) as server,
        open_model_thread(role(server)) as thread,
    ):
        write = endpoint_writer(thread)
        (first,), (second,), (third,) = write([part(0)]), write([part(1, "a boat")]), write([part(2, "a cat")])
    assert (first.title, second.title, third.title) == (GOOD["title"], "", "")
    assert first.usage.input_tokens > 0 and second.refused is None and len(server.seen) == 6


def test_an_endpoint_is_asked_once_more_and_no_more(kinodex):
    replies = in_turn({"title": "", "summary": "x"}, GOOD, {"title": "x"}, {"title": "y"}, failing(400, "no"))
    with ChatServer(replies) as server, open_model_thread(role(server)) as thread:
        write = endpoint_writer(thread)
        (first,), (second,), (third,) = write([part(0)]), write([part(1, "a boat")]), write([part(2, "a cat")])
    assert server.problems == []
    assert (first.title, first.text) == (GOOD["title"], GOOD["summary"])
    assert "the title is empty" in server.seen[1].text
    assert second.title == "" and second.refused is None and second.usage.input_tokens > 0
    assert third.title == "" and third.refused is not None
    assert len(server.seen) == 5


def test_a_local_model_of_words_alone(tiny_model):
    writer = open_writer(str(tiny_model("llama")), "cpu", 12)
    assert not writer.sees
    write = local_writer(writer)
    wordless = SummarizePart(part=Segment(0, "v", 0.0, 30.0), level="scene", notes=())
    written = write([part(), wordless])
    assert len(written) == 2
    assert written[1] == Written(nothing_known=True)
