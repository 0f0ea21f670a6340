"""Pieces of a streamed reply: signs of life, the end, an error, and a reader who leaves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.errors import ModelUnreachable
from kinodex.web.openai_chat import pieces
from tests.jobs.serve.openai.test_reply import answer_with, asked_of


def test_a_silent_question_shows_that_it_lives_and_ends_with_its_answer(library: Path) -> None:
    asked = asked_of(library)
    answers: list[Answer] = []

    async def read() -> list[bytes]:
        found = []
        stream = pieces(asked, reasoning=True, include_usage=True, on_answer=answers.append, beat_s=0.01)
        async for piece in stream:
            found.append(piece)
            if found.count(b": still at work\n\n") == 2:
                asked.running.end(answer_with("answered", "A man.", None))
        return found

    found = asyncio.run(read())
    assert found[-1] == b"data: [DONE]\n\n"
    sent = [json.loads(each[6:]) for each in found if each.startswith(b"data: {")]
    assert [each["choices"][0]["delta"] for each in sent[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "A man."},
        {},
    ]
    assert (sent[-1]["choices"], sent[-1]["usage"]["total_tokens"], len(answers)) == ([], 0, 1)


def test_an_error_ends_a_stream_in_openais_form(library: Path) -> None:
    asked = asked_of(library)
    answers: list[Answer] = []
    asked.running.end(ModelUnreachable("the model is away"))

    async def read() -> list[Any]:
        return [each async for each in pieces(asked, reasoning=False, include_usage=True, on_answer=answers.append)]

    found = asyncio.run(read())
    assert json.loads(found[-2][6:])["error"]["message"] == "the model is away"
    assert (found[-1], answers) == (b"data: [DONE]\n\n", [])


def test_a_reader_who_leaves_stops_the_question(library: Path) -> None:
    asked = asked_of(library)

    async def leave() -> None:
        stream = pieces(asked, reasoning=True, include_usage=False, on_answer=lambda answer: None, beat_s=0.01)
        await anext(stream)
        await anext(stream)
        await stream.aclose()

    asyncio.run(leave())
    assert asked.running.state == "stopping"
