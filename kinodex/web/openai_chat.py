"""An endpoint in OpenAI's form over the questions of `kinodex serve`: `/v1/models` and `/v1/chat/completions`.

The question is found in a request's messages, asked like any other of the server, and its answer put into OpenAI's
form. Nothing that a request names is ever fetched or opened.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import re
import string
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS
from kinodex.agent.errors import ModelError, TraceError
from kinodex.agent.limits import Ledger
from kinodex.agent.prompts import clock
from kinodex.agent.protocol import MAX_OPTIONS, Earlier, Question
from kinodex.agent.variants.base import Variant
from kinodex.find import Finder, Query
from kinodex.guards import CLIENT_LEFT, NotGiven, disconnected, json_response, say_when, streamed
from kinodex.index.errors import KinodexError, LibraryError, QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import Hit, VideoRow
from kinodex.index.text import redact
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import make_question
from kinodex.jobs.pictures import decoded
from kinodex.pipeline.errors import PipelineError
from kinodex.web.ask_routes import AskFields, first_fault
from kinodex.web.kept import KEY
from kinodex.web.page import as_json
from kinodex.web.questions import AskRequest, MoneySpent, QuestionFault, Questions, Running, TooManyQuestions
from kinodex.web.sentences import end_sentence, round_sentences

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SEPARATOR = ":"
OFFERED = 12
"""Names that an error lists."""
REMEMBERED = 1000
"""Conversations whose next question is taken for one that follows."""
PREFIX = "chatcmpl-"
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


def openai_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes of the endpoint over these libraries, which belong to the thread of the server's loop."""
    from starlette.routing import Route

    settings, began = questions.settings, int(time.time())
    uris = [library.uri for library in libraries]
    models = chat_models(library_names(uris), settings.agent, has_language=settings.choice.has_language)
    chat = Chat(questions, libraries, models, PictureSearch(uris, settings.space))

    def listed(model: ChatModel) -> dict[str, Any]:
        return {"id": model.name, "object": "model", "created": began, "owned_by": "kinodex"}

    async def listing(request: Request) -> Response:
        return json_response({"object": "list", "data": [listed(each) for each in models]})

    async def one(request: Request) -> Response:
        return json_response(listed(find_model(models, request.path_params["name"])))

    async def completions(request: Request) -> Response:
        return await complete(chat, request)

    async def unknown(request: Request) -> Response:
        raise RequestRefused(
            f"there is no {request.method} {request.url.path[:100]} here; there are GET /v1/models and POST "
            "/v1/chat/completions",
            code="unknown_url",
            status=404,
        )

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return [
        Route("/v1/models", answering(listing)),
        Route("/v1/models/{name:path}", answering(one)),
        Route("/v1/chat/completions", answering(completions), methods=["POST"]),
        Route("/v1/{rest:path}", answering(unknown), methods=every),
    ]


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
        # The question ends with it, also where the client left before the first piece.
        return streamed(stream, STREAM_HEADERS, on_end=lambda: asked.running.stop(at_once=True))
    answer = await _answer_or_leave(asked, request)
    remember(answer)
    return json_response(completion(asked, answer))


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
    asked = own.request(
        chat.questions, model.library, question if after else replace(question, earlier=conversation.earlier)
    )
    running = chat.questions.start(replace(asked, agent=agent, videos=tuple(video_ids), after=after))
    about = frozenset(video_ids or (chat.questions.kept.find(after).facts.videos if after else ()))
    return Asked(running, body.model, library, moments, own.cite, about)


def _question(text: str, options: Sequence[str] | None, moments: Sequence[Moment], pictures: int) -> Question:
    """The question of a text: options as they were given, else as they stand in it."""
    notes: list[str] = []
    if options is None:
        written = read_options(text)
        question = make_question(written.text, written.options, notes.append)
    else:
        question = Question(text.strip(), tuple(options))
    return replace(question, text=f"{question.text}\n{in_words(moments, pictures)}") if moments else question


def _named_before(library: Library, conversation: Conversation) -> tuple[str, ...]:
    """Videos that the latest turn before the question to name any names, for a conversation that is not known here."""
    for role, text, _, videos in reversed(conversation.turns):
        named = videos or take_videos(text, lambda name: _find(library, name) is not None)[1]
        if named and role == "user":
            return named
    return ()


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


def _remember(chat: Chat, asked: Asked, digest: str) -> None:
    """Note an answer for the question that may follow it; an equal one before is not needed any more."""
    request = asked.running.request
    told = Told(asked.running.key, asked.videos, replace(request, videos=(), after=None))
    place = request.library, digest
    others = [each for each in chat.answered.pop(place, []) if not each.is_like(told)]
    chat.answered[place] = [*others, told][-REMEMBERED:]
    if len(chat.answered) > REMEMBERED:
        chat.answered.popitem(last=False)


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
        asked.running.stop(at_once=True)


# Names of models: a library and an agent, `films:eea`, or the library alone for the server's own agent.


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model as a client names it: a library by its number, and an agent, None being the server's own."""

    name: str
    library: int
    agent: str | None = None


def library_names(uris: Sequence[str]) -> tuple[str, ...]:
    """Name each library by the last part of its place; one whose name was taken before gets a number, `films-2`."""
    names: list[str] = []
    for uri in uris:
        path = urlsplit(uri).path if "://" in uri else uri
        plain = PurePosixPath(path.replace("\\", "/")).name.replace(SEPARATOR, "-") or "library"
        free = (f"{plain}-{number}" if number > 1 else plain for number in range(1, len(uris) + 2))
        names.append(next(each for each in free if each not in names))
    return tuple(names)


def chat_models(names: Sequence[str], own: Variant, *, has_language: bool) -> list[ChatModel]:
    """All models of the named libraries: each library alone, and with each agent that the server's models can be."""
    agents = dict.fromkeys([own.name, *(each.name for each in VARIANTS if has_language or not each.needs_language)])
    return [
        ChatModel(name if agent is None else f"{name}{SEPARATOR}{agent}", number, agent)
        for number, name in enumerate(names)
        for agent in (None, *agents)
    ]


def find_model(models: Sequence[ChatModel], name: str) -> ChatModel:
    """The model of a name; raises RequestRefused (404, model_not_found) with some that there are."""
    found = next((each for each in models if each.name == name), None)
    if found is None:
        some = ", ".join(each.name for each in models[:OFFERED])
        more = ", ..." if len(models) > OFFERED else ""
        raise RequestRefused(
            f"the model {name[:100]!r} does not exist; the models are {some}{more} (GET /v1/models)",
            "model",
            "model_not_found",
            404,
        )
    return found


# The body of `POST /v1/chat/completions`, with the fields of kinodex's own under `kinodex`.

CHARACTERS = 200_000
"""Of all texts of a request."""
MESSAGES = 1000


class OwnFields(AskFields):
    """Fields that OpenAI's form has no place for (`extra_body={"kinodex": {...}}`).

    `options` None: those that the text lists; an empty list: none, whatever the text looks like. `reasoning`: stream
    each round as a sentence. `cite`: end the content with the evidence in words.
    """

    options: list[str] | None = Field(default=None, max_length=MAX_OPTIONS + 1)
    reasoning: bool = True
    cite: bool = False


class Message(BaseModel):
    """One turn: a text, or parts with texts, pictures and names of videos."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(BaseModel):
    """Options of a streamed reply; `include_usage`: a last chunk with the tokens."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """The parts of a request that are read. Settings of sampling are taken, without effect."""

    model: str
    messages: list[Message] = Field(min_length=1, max_length=MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    kinodex: OwnFields = OwnFields()


async def read_request(request: Request) -> ChatRequest:
    """Read a request; raises RequestRefused for one that does not fit, or asks for what cannot be had here."""
    try:
        body = ChatRequest.model_validate_json(await request.body())
    except ValidationError as error:
        where, message = first_fault(error)
        raise RequestRefused(f"{where or 'the body'}: {message}", where or None) from error
    check_supported(body)
    return body


def check_supported(body: ChatRequest) -> None:
    """Raise RequestRefused for a request whose reply would not be what its sender counts on."""
    if body.n not in (None, 1):
        raise RequestRefused(f"got n={body.n}; a question has one answer, so leave n out", "n")
    if (body.tools or body.functions) and body.tool_choice != "none":
        raise RequestRefused("got tools; the agents use their own and call none of yours, so leave tools out", "tools")
    form = (body.response_format or {}).get("type", "text")
    if form != "text":
        raise RequestRefused(
            f"got response_format {form!r}; the answer is a text, and its parts are data in the field kinodex of the "
            "reply, so leave response_format out",
            "response_format",
        )
    if body.logprobs:
        raise RequestRefused("got logprobs; an agent's answer has none, so leave it out", "logprobs")
    if "audio" in (body.modalities or ()):
        raise RequestRefused("got the modality audio; answers are texts", "modalities")


# The messages of a request: the question, what was said before it, and the pictures and videos that come with it.

EARLIER = 8
"""Turns before the question that are told to an agent, where the server does not know their answers' evidence."""
PICTURE_PARTS = ("image_url", "input_image", "image")
VIDEO_PARTS = ("video_url", "input_video", "video", "file", "input_file")
TEXTS = ("text", "input_text", "output_text")
Turn = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""A role and a text, the pictures' URLs and the names of videos that came with it."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that ends with a question: its text, the pictures' URLs, names of videos, and the turns before.

    `instructions` are the system's: agents have prompts of their own, so only a video's name is taken from them.
    """

    question: str
    pictures: tuple[str, ...]
    videos: tuple[str, ...]
    turns: tuple[Turn, ...]
    instructions: str = ""

    @property
    def earlier(self) -> tuple[Earlier, ...]:
        """Questions before this one, with their answers, oldest first."""
        pairs: list[Earlier] = []
        asked: list[str] = []
        for role, text, *_ in self.turns:
            if role == "user":
                asked.append(text)
            elif asked:
                pairs.append(Earlier("\n".join(asked), text))
                asked = []
        return tuple(pairs[-EARLIER:])

    def digest(self, content: str | None = None) -> str:
        """Name of the turns before the question; with the `content` of a reply, of all turns up to it."""
        asked = ("user", self.question, self.pictures, self.videos)
        turns = self.turns if content is None else (*self.turns, asked, ("assistant", content, (), ()))
        written = json.dumps([(role, text.strip(), *sent) for role, text, *sent in turns])
        return hashlib.sha256(written.encode()).hexdigest()


def read_conversation(body: ChatRequest) -> Conversation:
    """Read the messages of a request; raises RequestRefused for parts that cannot be understood here."""
    instructions = [_text(each) for each in body.messages if each.role in ("system", "developer")]
    turns = [each for each in body.messages if each.role not in ("system", "developer")]
    if any(each.role in ("tool", "function") for each in turns):
        raise RequestRefused("got a message of a tool; the agents call none of yours, so leave it out", "messages")
    if not turns or turns[-1].role != "user":
        raise RequestRefused("the last message has to be the user's: it is the question", "messages")
    start = len(turns)
    while start and turns[start - 1].role == "user":
        start -= 1
    question = "\n".join(filter(None, map(_text, turns[start:])))
    if sum(len(_text(each)) for each in body.messages) > CHARACTERS:
        raise RequestRefused(f"the messages have more than {CHARACTERS:,} characters", "messages")
    return Conversation(
        question.strip(),
        _sent(turns[start:], PICTURE_PARTS),
        _sent(turns[start:], VIDEO_PARTS),
        tuple(
            (each.role, _text(each), _sent([each], PICTURE_PARTS), _sent([each], VIDEO_PARTS)) for each in turns[:start]
        ),
        "\n".join(instructions),
    )


def _text(message: Message) -> str:
    return "\n".join(part["text"] for part in _parts(message) if part["type"] in TEXTS)


def _parts(message: Message) -> Sequence[dict[str, Any]]:
    """Parts of a message, each of a kind that is known here."""
    if message.content is None or isinstance(message.content, str):
        return [{"type": "text", "text": message.content or ""}]
    for part in message.content:
        kind = part.get("type")
        if kind not in (*TEXTS, *PICTURE_PARTS, *VIDEO_PARTS, "refusal"):
            raise RequestRefused(
                f"got a part of type {kind!r}; parts are text, image_url (data: alone) and video_url (the name of a "
                "video that is indexed here)",
                "messages",
            )
        if kind in TEXTS and not isinstance(part.get("text"), str):
            raise RequestRefused(f"got a part of type {kind!r} without a text", "messages")
    return message.content


def _sent(messages: Iterable[Message], kinds: Sequence[str]) -> tuple[str, ...]:
    """Addresses or names in the parts of these kinds."""
    return tuple(_url(part, kinds) for each in messages for part in _parts(each) if part["type"] in kinds)


def _url(part: dict[str, Any], kinds: Iterable[str]) -> str:
    """The address or name in a part: `{"type": T, T: {"url": U}}`, `{"type": T, T: U}`, or a file's name."""
    held = [part.get(kind) for kind in kinds] + [part]
    names = ("url", "filename", "file_id", "name", "data")
    for each in held:
        if isinstance(each, str) and each:
            return each
        if isinstance(each, dict):
            found = next((each[name] for name in names if isinstance(each.get(name), str) and each[name]), None)
            if found is not None:
                return str(found)
    raise RequestRefused(f"got a part of type {part['type']!r} without an address or name", "messages")


# Options that a question lists in its text, as evaluation kits write them, and videos that it names in a line.

LINE = re.compile(r"^\s*(?:\(([A-Z])\)|([A-Z])\s*[.):])\s*(\S.*?)\s*$")
IN_LINE = re.compile(r"(?:^|(?<=\s))\(([A-Z])\)\s*")
VIDEO = re.compile(r"^[ \t]*videos?[ \t]*[:=][ \t]*(\S.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
HEADING = re.compile(
    r"^\s*(?:answer\s+)?(?:options?|choices?|candidates?|answers?|the options are)\s*:?\s*$", re.IGNORECASE
)
LABEL = re.compile(r"^\s*question\s*:\s*", re.IGNORECASE)
INSTRUCTION = re.compile(
    r"^\s*(?:(?:please|now|only|just|directly|your task is to)[\s,]+)*"
    r"(?=(?:answer|select|choose|pick|respond|reply|give|output|provide|return)\b)"
    r"(?=.*\b(?:letters?|options?|choices?|answers?|question)\b).*$|^\s*(?:the\s+)?(?:best\s+)?answer(?:\s+is)?\s*:?\s*\(?\s*$",
    re.IGNORECASE,
)
"""A line of a kit that says how to reply. Beside options it is left out: an agent is asked for an option anyway."""
ORDER = re.compile(
    r"^\s*(?:please\s+|and\s+|then\s+|also\s+|briefly\s+)*(?:explain|justify|describe|think|reason|state|cite|mention|say|tell|show|"
    r"give|include|do\s+not|don't|be\s+(?:brief|concise))\b",
    re.IGNORECASE,
)
"""A line after options that orders something: it stays with the question, and ends the options."""
WHOLE = re.compile(r"[.!?。！？][\"')\]]*\s*$")
LEAST = 2


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """The question itself, and the options that stood with it; without options the text as it was."""

    text: str
    options: tuple[str, ...] = ()


def read_options(text: str) -> WrittenQuestion:
    """Take apart a text that lists "A. ...", "B) ...", "(C) ..." from A on, in lines or "(A) ... (B) ..." in one.

    A line without a letter right after an option goes on with it, unless that has ended or the line is an order.
    Letters that come back ("A: ...", "B: ...", "A: ...") are speakers of a dialogue, and no options.
    """
    lines = [part for line in text.splitlines() for part in _split(line)]
    letters = [(match[1] or match[2], match[3]) if (match := LINE.match(line)) else None for line in lines]
    first = next((at for at, each in enumerate(letters) if each is not None and each[0] == "A"), None)
    if first is None:
        return WrittenQuestion(text.strip())
    options, after = _listed(lines[first:], letters[first:])
    labels = [each[0] for each in letters if each is not None]
    if len(options) < LEAST or len({*labels}) < len(labels):
        return WrittenQuestion(text.strip())
    words = [line for line in (*lines[:first], *after) if line.strip()]
    asked = [line for line in words if not INSTRUCTION.match(line) and not HEADING.match(line)]
    question = LABEL.sub("", "\n".join(line.strip() for line in asked or words[:1]), count=1)
    return WrittenQuestion(question.strip(), tuple(options))


def _split(line: str) -> Sequence[str]:
    """Parts of a line in which several options stand, "Which? (A) one (B) two"; else the line."""
    starts = [match.start() for match in IN_LINE.finditer(line)]
    letters = [match[1] for match in IN_LINE.finditer(line)]
    if len(letters) < LEAST or letters != list(string.ascii_uppercase[: len(letters)]):
        return [line]
    ends = [*starts[1:], len(line)]
    return [line[: starts[0]], *(line[start:end] for start, end in zip(starts, ends, strict=True))]


def _listed(lines: Sequence[str], letters: Sequence[tuple[str, str] | None]) -> tuple[list[str], list[str]]:
    """Options in the order of their letters, and the lines after the last of them."""
    options: list[str] = []
    is_open = True
    for at, (line, option) in enumerate(zip(lines, letters, strict=True)):
        if option is not None and len(options) < len(string.ascii_uppercase):
            if option[0] != string.ascii_uppercase[len(options)]:
                return options, list(lines[at:])
            options.append(option[1])
            is_open = True
        elif not line.strip():
            is_open = False
        elif INSTRUCTION.match(line) or not is_open or ORDER.match(line) or WHOLE.search(options[-1]):
            return options, list(lines[at:])
        else:
            options[-1] += f" {line.strip()}"
    return options, []


def take_videos(text: str, is_known: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """Take lines "video: NAME" out of a text where the name, or each of several after commas, is of a known video.

    Any other such line stays: it may be part of the question.
    """
    found: list[str] = []

    def taken(match: re.Match[str]) -> str:
        whole = match[1].strip("\"'`")
        parts = [whole] if is_known(whole) else [each.strip().strip("\"'`") for each in match[1].split(",")]
        if not all(each and is_known(each) for each in parts):
            return match[0]
        found.extend(parts)
        return ""

    rest = VIDEO.sub(taken, text)
    return (rest.strip() if found else text), tuple(dict.fromkeys(found))


# Pictures of a request as searches: the moments of a library that they are most like.
#
# A picture comes in the request itself, as a data: URL. An address is never fetched: it could name anything that this
# machine reaches.

PICTURES = 16
"""Pictures of a request that are searched for; of more, such as the frames of a kit, as many are taken evenly."""
MOST_PICTURES = 256
MOMENTS, VIDEOS, MIN_GAP_S = 5, 3, 10.0
"""Moments that the question names, the videos that it is then about, and seconds between moments of one video."""
DATA = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a video that a picture is like; `score` is the cosine."""

    video_id: str
    title: str
    time_s: float
    score: float


@dataclass(eq=False)
class PictureSearch:
    """Searches by picture in some libraries, opened when they are first searched, one search at a time."""

    uris: Sequence[str]
    space: str | None
    _finders: dict[int, Finder] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def moments(self, library: int, urls: Sequence[str], video_ids: Sequence[str]) -> list[Moment]:
        """The moments of these videos (none: all) that pictures are most like, best first.

        Raises RequestRefused for what is no picture, SpaceError where the library has no tower for pictures.
        """
        if not urls:
            return []
        chosen = spread(urls)
        async with self._turn:
            return await asyncio.to_thread(self._search, library, chosen, tuple(video_ids))

    def _search(self, number: int, urls: Sequence[str], video_ids: tuple[str, ...]) -> list[Moment]:
        pictures = [read_picture(url) for url in urls]
        if number not in self._finders:
            self._finders[number] = Finder(Library.open(self.uris[number]), self.space)
        finder = self._finders[number]
        queries = [Query("", each, "pictures", video_ids, k=MOMENTS, min_gap_s=MIN_GAP_S) for each in pictures]
        hits = [hit for query in queries for hit in finder.find(query)]
        best: list[Hit] = []  # apart from each other, of the few videos that have them
        for hit in sorted(hits, key=lambda hit: -hit.score):
            videos = {each.video_id for each in best}
            if hit.video_id not in videos and len(videos) == VIDEOS:
                continue
            if all(each.video_id != hit.video_id or abs(each.time_s - hit.time_s) >= MIN_GAP_S for each in best):
                best.append(hit)
        del best[MOMENTS:]
        return [Moment(hit.video_id, finder.library.video(hit.video_id).title, hit.time_s, hit.score) for hit in best]


def spread(urls: Sequence[str]) -> list[str]:
    """At most `PICTURES` of them, evenly; raises RequestRefused for more than are taken at all."""
    if len(urls) > MOST_PICTURES:
        raise RequestRefused(f"got {len(urls)} pictures; at most {MOST_PICTURES} are taken", "messages")
    if len(urls) <= PICTURES:
        return list(urls)
    return [urls[int(at)] for at in np.linspace(0, len(urls) - 1, PICTURES).round()]


def read_picture(url: str) -> NDArray[np.uint8]:
    """Decode a data: URL to RGB [height, width, 3]; raises RequestRefused for any other, and for what is no picture."""
    start = DATA.match(url)
    if start is None:
        raise RequestRefused(
            f"got a picture at {url[:60]!r}; addresses are not fetched, so send the picture itself, as "
            "data:image/jpeg;base64,...",
            "messages",
            "invalid_image_url",
        )
    try:
        return decoded(base64.b64decode(url[start.end() :], validate=True))
    except binascii.Error as error:
        raise RequestRefused(f"cannot read the picture: {error}; send base64", "messages", "invalid_image") from error
    except UsageError as error:
        raise RequestRefused(str(error), "messages", "invalid_image") from error


def in_words(moments: Sequence[Moment], pictures: int) -> str:
    """The sentence that a question gets: where pictures that came with it are from, as far as a search can say."""
    named = "; ".join(f"{each.title!r} at {clock(each.time_s)}" for each in moments)
    what = "a picture; it is" if pictures == 1 else f"{pictures} pictures; they are"
    return f"With the question came {what} most like these moments: {named}."


# A reply in OpenAI's form: the answer as content, its costs as usage, and the rest of it under `kinodex`.

NO_ANSWER = {
    "insufficient_evidence": "No answer: what the agent saw does not show it.",
    "budget_exhausted": "No answer: the budget was spent before there was one.",
    "invalid": "No answer: no reply of the model could be used.",
}
CITED = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way for a client: its model's name, the library, and the moments of its pictures.

    `videos` are the ids of those that it is about; none are all.
    """

    running: Running
    model: str
    library: Library
    moments: Sequence[Moment] = ()
    cite: bool = False
    videos: frozenset[str] = frozenset()

    @property
    def completion_id(self) -> str:
        """Id of the reply; `kinodex.after` takes it."""
        return f"{PREFIX}{self.running.key}"


def completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The whole reply."""
    message = {"role": "assistant", "content": content(asked, answer), "refusal": None}
    return {
        **heading(asked, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(answer.ledger),
        "kinodex": own_fields(asked, answer),
    }


def chunk(asked: Asked, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """A piece of a streamed reply."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
    return {**heading(asked, "chat.completion.chunk"), "choices": [choice]}


def heading(asked: Asked, kind: str) -> dict[str, Any]:
    """Fields that a reply and its pieces begin with."""
    created = int(asked.running.asked_at.timestamp())
    return {"id": asked.completion_id, "object": kind, "created": created, "model": asked.model}


def content(asked: Asked, answer: Answer) -> str:
    """The answer as a text. That to options begins with the letter: programs look for it there."""
    options = asked.running.request.question.options
    if answer.option is not None:
        text = f"{answer.letter}. {options[answer.option]}"
    else:
        text = answer.text or NO_ANSWER.get(answer.status, "No answer.")
    if asked.cite and answer.evidence:
        text += f"\n\nSeen in {cited(asked, answer)}."
    return text


def cited(asked: Asked, answer: Answer) -> str:
    """The first ranges of evidence in words: `film-01` 0:21 to 0:25."""
    rows = [(asked.library.video(each.video_id), each) for each in answer.evidence[:CITED]]
    named = [f"{row.title} {clock(each.start_s)} to {clock(each.end_s)}" for row, each in rows]
    more = len(answer.evidence) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def usage(ledger: Ledger) -> dict[str, Any]:
    """Tokens of the models' calls; those of servers that count none are estimated, among those of the prompt."""
    prompt = ledger.input_tokens + ledger.estimated_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": ledger.output_tokens,
        "total_tokens": prompt + ledger.output_tokens,
        "prompt_tokens_details": {"cached_tokens": ledger.cached_tokens},
    }


def own_fields(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Fields of kinodex's own: status, evidence, costs, and where the trace can be looked at."""
    return {
        "key": asked.running.key,
        "status": answer.status,
        "letter": answer.letter,
        "reason": answer.reason,
        "rounds": answer.rounds,
        "supported": answer.supported,
        "noise": answer.noise,
        "evidence": [
            {
                "video_id": each.video_id,
                "title": asked.library.video(each.video_id).title,
                "start_s": each.start_s,
                "end_s": each.end_s,
            }
            for each in answer.evidence
        ],
        "pictures": [asdict(each) for each in asked.moments],
        "ledger": asdict(answer.ledger),
        "trace": f"/#/trace/{asked.running.key}",
    }


# A reply in pieces: a sentence a round as the model's reasoning, then the answer, then what it cost.

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
        async with aclosing(running.changes(beat_s=beat_s)) as changes:
            async for version in changes:
                if version is None:
                    yield b": still at work\n\n"
                elif reasoning:
                    sentences = _sentences(asked)
                    for sentence in sentences[sent:]:
                        yield _data(chunk(asked, {"reasoning_content": f"{sentence}\n"}))
                    sent = max(sent, len(sentences))
        answer = await running.finished()
        on_answer(answer)
        yield _data(chunk(asked, {"content": content(asked, answer)}))
        yield _data({**chunk(asked, {}, "stop"), "kinodex": own_fields(asked, answer)})
        if include_usage:
            yield _data({**heading(asked, "chat.completion.chunk"), "choices": [], "usage": usage(answer.ledger)})
        yield END
    except (KinodexError, PipelineError) as error:
        yield _data(error_body(error)[1])
        yield END
    finally:
        asked.running.stop(at_once=True)


def _sentences(asked: Asked) -> list[str]:
    """Sentences of the rounds that are over."""
    records = list(asked.running.records)
    if not records:
        return []
    said = list(round_sentences(records).values())
    return [*said, end_sentence(records)] if end_sentence(records) else said[:-1]


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % as_json(value)


# Errors in OpenAI's form: a message, a type, the parameter at fault and a code.


BAD_REQUEST, LIMIT, SERVER = "invalid_request_error", "rate_limit_error", "server_error"


class RequestRefused(UsageError):
    """A request in OpenAI's form that cannot be answered: the parameter at fault, a code, and the HTTP status."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


def answering(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about a request into OpenAI's form; any other exception is a fault and stays one."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except KinodexError as error:
            status, body = error_body(error)
            return say_when(error, json_response(body, status=status))

    return respond


def error_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of an error of the tree."""
    status, kind, code = _class(error)
    param = error.param if isinstance(error, RequestRefused) else None
    return status, {"error": {"message": redact(str(error)), "type": kind, "param": param, "code": code}}


def _class(error: Exception) -> tuple[int, str, str | None]:
    """Status, type and code of an error."""
    match error:
        case RequestRefused():
            return error.status, BAD_REQUEST, error.code
        case TooManyQuestions():
            return 429, LIMIT, "rate_limit_exceeded"
        case MoneySpent():
            return 429, "insufficient_quota", "insufficient_quota"
        case ModelError():
            return 502, SERVER, "model_unusable"
        case QuestionFault():
            return 500, SERVER, None
        case NotGiven() | TraceError():
            return 404, BAD_REQUEST, "not_found"
        case UnknownVideo() | QueryError():
            return 400, BAD_REQUEST, "video_not_found" if isinstance(error, UnknownVideo) else None
        case LibraryError():
            return 503, SERVER, "library_unusable"
    return 400, BAD_REQUEST, None
