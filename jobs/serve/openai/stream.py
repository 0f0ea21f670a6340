"""A reply in pieces: a sentence a round as the model's reasoning, then the answer, then what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

from agent.answer import Answer
from index.errors import KinodexError
from jobs.serve.openai.errors import error_body
from jobs.serve.openai.reply import Asked, chunk, content, heading, own_fields, usage
from jobs.serve.running import FINISHED
from jobs.viewer.html import as_json
from jobs.viewer.sentences import end_sentence, round_sentences
from pipeline.errors import PipelineError

BEAT_S = 10.0
"""Seconds after which a silent stream says that it lives."""
END = b"data: [DONE]\n\n"


async def pieces(
    asked: Asked, *, reasoning: bool, include_usage: bool, on_answer: Callable[[Answer], None], beat_s: float = BEAT_S
) -> AsyncGenerator[bytes, None]:
    """Messages of a streamed reply. A reader who leaves stops the question."""
    running = asked.running
    try:
        yield _data(chunk(asked, {"role": "assistant", "content": ""}))
        sent = 0
        async for _ in _versions(asked, beat_s):
            if _ is None:
                yield b": still at work\n\n"
            elif reasoning:
                sentences = _sentences(asked)
                for sentence in sentences[sent:]:
                    yield _data(chunk(asked, {"reasoning_content": f"{sentence}\n"}))
                sent = max(sent, len(sentences))
        async for piece in _ending(asked, include_usage, on_answer):
            yield piece
    finally:
        if running.state not in FINISHED:
            running.stop(at_once=True)


async def _ending(asked: Asked, include_usage: bool, on_answer: Callable[[Answer], None]) -> AsyncIterator[bytes]:
    try:
        answer = await asked.running.finished()
    except (KinodexError, PipelineError) as error:
        yield _data(error_body(error)[1])
        yield END
        return
    on_answer(answer)
    yield _data(chunk(asked, {"content": content(asked, answer)}))
    yield _data({**chunk(asked, {}, "stop"), "kinodex": own_fields(asked, answer)})
    if include_usage:
        yield _data({**heading(asked, "chat.completion.chunk"), "choices": [], "usage": usage(answer.ledger)})
    yield END


async def _versions(asked: Asked, beat_s: float) -> AsyncIterator[int | None]:
    """Changes of a question until its end; None after each `beat_s` without one."""
    changes = asked.running.changes()
    coming = asyncio.ensure_future(anext(changes, None))
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=beat_s)
            if not done:
                yield None
                continue
            version = coming.result()
            if version is None:
                return
            yield version
            coming = asyncio.ensure_future(anext(changes, None))
    finally:
        coming.cancel()
        await asyncio.wait([coming])


def _sentences(asked: Asked) -> list[str]:
    """Sentences of the rounds that are over."""
    records = list(asked.running.records)
    if not records:
        return []
    said = list(round_sentences(records).values())
    return [*said, end_sentence(records)] if end_sentence(records) else said[:-1]


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % as_json(value)
