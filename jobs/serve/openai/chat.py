"""Answer a chat completion with an agent: from the request to the question, and back to a reply."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agent.answer import Answer
from agent.core.answer_rules import AnswerRules
from agent.core.question import Question
from index.errors import UnknownVideo
from index.library import Library
from index.rows import VideoRow
from jobs.benchmarks.samples import make_question
from jobs.serve.kept_traces import KEY
from jobs.serve.openai.chat_request import ChatRequest, read_request
from jobs.serve.openai.conversation import Conversation, read_conversation
from jobs.serve.openai.errors import RequestRefused
from jobs.serve.openai.model_names import ChatModel, find_model
from jobs.serve.openai.pictures import Moment, PictureSearch, in_words
from jobs.serve.openai.reply import PREFIX, Asked, completion, content
from jobs.serve.openai.stream import pieces
from jobs.serve.openai.written_options import read_options, take_videos
from jobs.serve.questions import Questions
from jobs.serve.running import FINISHED, AskRequest
from jobs.viewer.server import CLIENT_LEFT, disconnected, json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

REMEMBERED = 1000
"""Conversations whose next question is taken for one that follows."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer that a client was given: its question's key, the videos that it is about, and how it was asked."""

    key: str
    videos: frozenset[str]
    asked: AskRequest
    """Without videos and what it followed."""

    def is_like(self, other: Told) -> bool:
        """True if who goes on from the other may as well go on from this."""
        return (self.videos, self.asked) == (other.videos, other.asked)


@dataclass(frozen=True, slots=True)
class Chat:
    """All that completions need; `answered` are the answers by library and the words of their conversation so far.

    Several clients may have used the same words, about different videos.
    """

    questions: Questions
    libraries: Sequence[Library]
    models: Sequence[ChatModel]
    pictures: PictureSearch
    answered: OrderedDict[tuple[int, str], list[Told]] = field(default_factory=OrderedDict)


async def complete(chat: Chat, request: Request) -> Response:
    """Answer `POST /v1/chat/completions`; a client who leaves stops the question."""
    body = await read_request(request)
    conversation = read_conversation(body)
    asked = await _start(chat, body, conversation, request)

    def remember(answer: Answer) -> None:
        _remember(chat, asked, conversation.digest(content(asked, answer)))

    if body.stream:
        wants_usage = body.stream_options is not None and body.stream_options.include_usage
        stream = pieces(asked, reasoning=body.kinodex.reasoning, include_usage=wants_usage, on_answer=remember)
        return _streamed(asked, stream)
    answer = await _answer_or_leave(asked, request)
    remember(answer)
    return json_response(completion(asked, answer))


def _remember(chat: Chat, asked: Asked, digest: str) -> None:
    """Note an answer for the question that may follow it; an equal one before is not needed any more."""
    request = asked.running.request
    told, place = (
        Told(asked.running.key, asked.videos, replace(request, videos=(), after=None)),
        (request.library, digest),
    )
    others = [each for each in chat.answered.pop(place, []) if not each.is_like(told)]
    chat.answered[place] = [*others, told][-REMEMBERED:]
    if len(chat.answered) > REMEMBERED:
        chat.answered.popitem(last=False)


def _followed(chat: Chat, place: tuple[int, str], videos: frozenset[str], agent: str) -> str | None:
    """Key of the question that a conversation goes on from, by its words and the videos that it names, if any.

    Raises RequestRefused where it could be one of several: another client's answer is not guessed.
    """
    known = chat.answered.get(place, [])
    same = [each for each in known if each.videos == videos]
    about = same or [each for each in known if not videos or not each.videos or videos < each.videos]
    about = [each for each in about if each.asked.agent == agent] or about
    if not all(each.is_like(about[0]) for each in about):
        raise RequestRefused(
            f"these words were said in {len(about)} conversations, about other videos or with other settings; name the "
            f"one that you go on with, kinodex.after={' or '.join(each.key for each in about[-8:])}, or its videos",
            "kinodex.after",
            "ambiguous_conversation",
        )
    return about[-1].key if about else None


def _streamed(asked: Asked, stream: AsyncGenerator[bytes]) -> Response:
    """Response of these pieces. Its question ends with it, also where the client left before the first of them."""
    from starlette.responses import StreamingResponse
    from starlette.types import Receive, Scope, Send

    class Streamed(StreamingResponse):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await super().__call__(scope, receive, send)
            finally:
                _leave(asked)

    return Streamed(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _leave(asked: Asked) -> None:
    if asked.running.state not in FINISHED:
        asked.running.stop(at_once=True)


async def _start(chat: Chat, body: ChatRequest, conversation: Conversation, request: Request) -> Asked:
    """Begin the question of a request; raises what is wrong with it."""
    model, own = find_model(chat.models, body.model), body.kinodex
    library = chat.libraries[model.library]
    videos = _videos(library, (*own.videos, *conversation.videos))
    text, named = take_videos(conversation.question, lambda name: _find(library, name) is not None)
    _, by_system = take_videos(conversation.instructions, lambda name: _find(library, name) is not None)
    rows = videos or _videos(library, named or by_system)
    agent = own.agent or model.agent or chat.questions.settings.agent.name
    about = frozenset(row.video_id for row in rows)
    after = _key(own.after) or _followed(chat, (model.library, conversation.digest()), about, agent)
    rows = rows or ([] if after else _videos(library, _named_before(library, conversation)))
    moments = await chat.pictures.moments(model.library, conversation.pictures, [row.video_id for row in rows])
    question = _question(text, own.options, moments, len(conversation.pictures))
    video_ids = [row.video_id for row in rows] or list(dict.fromkeys(each.video_id for each in moments))
    if await request.is_disconnected():
        raise RequestRefused("the client did not wait", status=CLIENT_LEFT)
    running = chat.questions.start(
        AskRequest(
            library=model.library,
            question=question if after else replace(question, earlier=conversation.earlier),
            agent=agent,
            videos=tuple(video_ids),
            settings=own.settings,
            budget=own.budget.budget(),
            rules=AnswerRules(force_choice=own.force_choice, verify=own.verify),
            after=after,
        )
    )
    about = frozenset(video_ids or (chat.questions.kept.find(after).facts.videos if after else ()))
    return Asked(running, body.model, library, moments, own.cite, about)


def _named_before(library: Library, conversation: Conversation) -> tuple[str, ...]:
    """Videos that the latest turn before the question to name any names, for a conversation that is not known here."""
    for role, text, _, videos in reversed(conversation.turns):
        named = videos or take_videos(text, lambda name: _find(library, name) is not None)[1]
        if named and role == "user":
            return named
    return ()


def _question(text: str, options: Sequence[str] | None, moments: Sequence[Moment], pictures: int) -> Question:
    """The question of a text: options as they were given, else as they stand in it."""
    notes: list[str] = []
    if options is None:
        written = read_options(text)
        question = make_question(written.text, written.options, notes.append)
    else:
        question = Question(text.strip(), tuple(options))
    return replace(question, text=f"{question.text}\n{in_words(moments, pictures)}") if moments else question


def _videos(library: Library, names: Sequence[str]) -> list[VideoRow]:
    """Videos that a request names, each once; raises RequestRefused for one that is not indexed here."""
    rows: dict[str, VideoRow] = {}
    for name in names:
        found = next(filter(None, (_find(library, each) for each in names_of(name))), None)
        if found is None:
            raise RequestRefused(
                f"got the video {name[:100]!r}, which this library does not hold, or holds more than once; name an "
                "indexed video by its id, its title or its path: nothing is fetched from an address or read from the "
                "request",
                "messages",
                "video_not_found",
            )
        rows[found.video_id] = found
    return list(rows.values())


def names_of(name: str) -> list[str]:
    """Names under which a video may be known: a kit sends the path of its own copy, whose file has the same name."""
    path = unquote(urlsplit(name).path) if name.startswith("file://") else name
    apart = [PurePosixPath(path).name] if path.startswith("/") else []
    return list(dict.fromkeys(each for each in (name, path, *apart) if each))


def _find(library: Library, name: str) -> VideoRow | None:
    """The one video of a whole name, else None: a part of a title could be any word of a question."""
    try:
        return library.video(name, whole_name=True)
    except UnknownVideo:
        return None


def _key(name: str | None) -> str | None:
    """The key of a question from `q12` or the id of its completion."""
    if name is None:
        return None
    key = name.removeprefix(PREFIX)
    if not KEY.fullmatch(key):
        raise RequestRefused(
            f"got after={name[:40]!r}; give the id of an earlier completion, or its key", "kinodex.after"
        )
    return key


async def _answer_or_leave(asked: Asked, request: Request) -> Answer:
    """Wait for the answer, or for the client to go, which stops the question."""
    answer = asyncio.ensure_future(asked.running.finished())
    left = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait([answer, left], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            asked.running.stop(at_once=True)
        return await answer
    finally:
        left.cancel()
        _leave(asked)
