"""Answers of every kind as content, usage and fields of kinodex."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.agent.answer import Answer, Evidence, Status
from kinodex.agent.limits import Ledger
from kinodex.agent.protocol import Question
from kinodex.index.library import Library
from kinodex.web.openai_chat import Asked, completion, content, usage
from kinodex.web.questions import AskRequest, Running


def asked_of(library: Path, options: tuple[str, ...] = (), *, cite: bool = False) -> Asked:
    request = AskRequest(0, Question("Who?", options))
    return Asked(Running("q7", request, datetime(2026, 1, 2, tzinfo=UTC)), "m", Library.open(str(library)), cite=cite)


def answer_with(status: Status, text: str | None, option: int | None, *evidence: Evidence) -> Answer:
    return Answer(status, text, option, evidence, 1, Ledger())


def test_content_begins_with_the_letter_or_says_that_there_is_no_answer(library: Path) -> None:
    asked = asked_of(library, ("one", "two"))
    assert content(asked, answer_with("answered", "it is two", 1)) == "B. two"
    assert content(asked_of(library), answer_with("answered", "A man.", None)) == "A man."
    none: list[Status] = ["insufficient_evidence", "budget_exhausted", "invalid"]
    for status in none:
        assert content(asked, answer_with(status, None, None)).startswith("No answer: ")


def test_evidence_in_words_and_fields(library: Path) -> None:
    asked = asked_of(library, cite=True)
    film = asked.library.video("film-01").video_id
    parts = [Evidence(film, float(n), n + 1.5) for n in range(7)]
    answer = answer_with("answered", "A man.", None, *parts)
    text = content(asked, answer)
    assert text.startswith("A man.\n\nSeen in film-01 0:00 to 0:01, film-01 0:01 to 0:02, ")
    assert text.endswith("0:04 to 0:05 and 2 more.")
    reply = completion(asked, answer)
    assert (reply["id"], reply["created"], reply["kinodex"]["trace"]) == ("chatcmpl-q7", 1767312000, "/#/trace/q7")
    assert reply["kinodex"]["evidence"][1] == {"video_id": film, "title": "film-01", "start_s": 1.0, "end_s": 2.5}


@pytest.mark.parametrize("estimated", [0, 5])
def test_usage_adds_up(estimated: int) -> None:
    ledger = Ledger(input_tokens=10, output_tokens=3, cached_tokens=4, estimated_tokens=estimated)
    counted = usage(ledger)
    assert counted["prompt_tokens"] == 10 + estimated
    assert counted["total_tokens"] == ledger.tokens == counted["prompt_tokens"] + counted["completion_tokens"]
    assert counted["prompt_tokens_details"] == {"cached_tokens": 4}
