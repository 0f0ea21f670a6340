"""A question of a client of OpenAI's API: begun for its messages, answered as any other, and put in words.

The forms of chat completions and of responses (`openai_api`) stand on this: models by name, conversations that go on,
pictures as searches, the answer with its citations. Nothing that a request names is ever fetched or opened.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import reprlib
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic_core import PydanticCustomError

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS
from kinodex.agent.protocol import MAX_OPTIONS, Question
from kinodex.agent.variants.base import Variant
from kinodex.find import Finder, Query
from kinodex.guards import CLIENT_LEFT, disconnected, json_response, streamed
from kinodex.index.errors import KinodexError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import Hit, VideoRow
from kinodex.index.times import clock, player_clock
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import make_question
from kinodex.jobs.pictures import decoded
from kinodex.pipeline.errors import PipelineError
from kinodex.web.ask_routes import AskFields, first_fault
from kinodex.web.chat_tasks import refuse_task
from kinodex.web.kept_traces import KEY
from kinodex.web.openai_messages import Conversation, RequestRefused, read_options, take_videos
from kinodex.web.questions import AskRequest, Questions, Running
from kinodex.web.sentences import end_sentence, round_sentences

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BEAT_S, BEAT = 10.0, b": still at work\n\n"
"""Seconds after which a silent stream says that it lives, and how."""
REMEMBERED = 1000
"""Conversations whose next question is taken for one that follows."""
PREFIX = re.compile(r"^(chatcmpl-|resp_|msg_)")
"""Beginnings of the ids that a client was given: of a completion, of a response and of its message."""
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


# What both forms of a request share, and the reply, whose form each has of its own.


class OwnFields(AskFields):
    """Fields that OpenAI's form has no place for (`extra_body={"kinodex": {...}}`).

    `options` None: those that the text lists; an empty list: none, whatever the text looks like. `reasoning`: say each
    round as a sentence. `cite`: end the text with film and time of the evidence; None: where there are no options,
    for programs compare the text of an answer to options.
    """

    options: list[str] | None = Field(default=None, max_length=MAX_OPTIONS + 1)
    reasoning: bool = True
    cite: bool | None = None


def unless(why: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """Refuse what a client counts on and cannot have: a value of a field that neither is None nor fits."""

    def check(value: Any) -> Any:
        if value is None or fits(value):
            return value
        raise PydanticCustomError(
            "refused", "got {got}; {why}, so leave it out", {"got": reprlib.repr(value), "why": why}
        )

    return AfterValidator(check)


def _is_free(choice: Any) -> bool:
    """True for a choice of tools that leaves it to the model to call none."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        choice = choice.get("allowed_tools", choice).get("mode")
    return choice in ("auto", "none")


NoTools = Annotated[Any, unless("the agents call none of your tools", _is_free)]
NoLogprobs = Annotated[Any, unless("an agent's answer has no log-probabilities", lambda asked: not asked)]
TextAlone = Annotated[
    dict[str, Any] | None,
    unless(
        "the answer is a text, and its parts are data in the field kinodex of the reply",
        lambda form: form.get("type") == "text",
    ),
]


class Body(BaseModel):
    """Fields of both forms that are read. All others, settings of sampling among them, are taken without effect."""

    model: str
    stream: bool | None = None
    tool_choice: NoTools = None
    top_logprobs: NoLogprobs = None
    kinodex: OwnFields = OwnFields()

    @abstractmethod
    def conversation(self) -> Conversation:
        """The messages of the request; raises RequestRefused for what cannot be understood."""

    @abstractmethod
    def reply(self, asked: Asked) -> Reply:
        """The reply that the request gets."""


class Reply(Protocol):
    """The form of a reply: whole, or as the messages of a stream in their order."""

    def whole(self, answer: Answer) -> dict[str, Any]: ...
    def opening(self) -> Iterator[bytes]: ...
    def thought(self, sentence: str) -> Iterator[bytes]: ...
    def closing(self, answer: Answer) -> Iterator[bytes]: ...
    def failure(self, error: Exception) -> Iterator[bytes]: ...


async def reply_to(desk: Desk, request: Request, form: type[Body]) -> Response:
    """Answer a request of this form; a client who leaves stops the question. Raises what is wrong with the request."""
    try:
        body = form.model_validate_json(await request.body())
    except ValidationError as error:
        where, message = first_fault(error)
        raise RequestRefused(f"{where or 'the body'}: {message}", where or None) from error
    conversation = body.conversation()
    refuse_task(conversation)
    asked = await begin(desk, body, conversation, request)
    reply, note = body.reply(asked), partial(remember, desk, asked, conversation)
    if body.stream:
        # The question ends with it, also where the client left before the first piece.
        return streamed(pieces(asked, reply, note), STREAM_HEADERS, on_end=lambda: asked.running.stop(at_once=True))
    answer = await _answer_or_leave(asked, request)
    note(answer)
    return json_response(reply.whole(answer))


async def pieces(
    asked: Asked, reply: Reply, on_answer: Callable[[Answer], None], beat_s: float = BEAT_S
) -> AsyncGenerator[bytes, None]:
    """Messages of a streamed reply, a comment after each silent `beat_s`. A reader who leaves stops the question."""
    try:
        for message in reply.opening():
            yield message
        sent = 0
        async with aclosing(asked.running.changes(beat_s=beat_s)) as changes:
            async for version in changes:
                sentences = asked.sentences() if version is not None else []
                for message in chain.from_iterable(map(reply.thought, sentences[sent:])):
                    yield message
                sent = max(sent, len(sentences))
                if version is None:
                    yield BEAT
        answer = await asked.running.finished()
        on_answer(answer)
        for message in reply.closing(answer):
            yield message
    except (KinodexError, PipelineError) as error:
        for message in reply.failure(error):
            yield message
    finally:
        asked.running.stop(at_once=True)


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


# A question, begun for the messages of a request.


@dataclass(frozen=True, slots=True)
class Desk:
    """All that a request needs; `answered` are the answers by library and the words of their conversation so far.

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way for a client: its model's name, the library, and the moments of its pictures.

    `videos` are the ids of those that it is about; none are all. `site` is the address of this server's page.
    """

    running: Running
    model: str
    library: Library
    moments: Sequence[Moment] = ()
    own: OwnFields = field(default_factory=OwnFields)
    videos: frozenset[str] = frozenset()
    site: str = "/"

    def heading(self, prefix: str, kind: str, created: str = "created") -> dict[str, Any]:
        """Fields that a reply and its pieces begin with; `created` names that of seconds since 1970."""
        asked_at = int(self.running.asked_at.timestamp())
        return {"id": f"{prefix}{self.running.key}", "object": kind, created: asked_at, "model": self.model}

    def sentences(self) -> list[str]:
        """Sentences of the rounds that are over, if they are wanted."""
        records = list(self.running.records)
        if not records or not self.own.reasoning:
            return []
        said = list(round_sentences(records).values())
        return [*said, end_sentence(records)] if end_sentence(records) else said[:-1]


async def begin(desk: Desk, body: Body, conversation: Conversation, request: Request) -> Asked:
    """Begin the question of a request; raises what is wrong with it."""
    model, own = find_model(desk.models, body.model), body.kinodex
    library = desk.libraries[model.library].where(own.where)
    videos = _videos(library, (*own.videos, *conversation.videos))
    text, named = take_videos(conversation.question, lambda name: _find(library, name) is not None)
    _, by_system = take_videos(conversation.instructions, lambda name: _find(library, name) is not None)
    rows = videos or _videos(library, named or by_system)
    agent = own.agent or model.agent or desk.questions.settings.agent.name
    about = frozenset(row.video_id for row in rows)
    after = _key(own.after) or _followed(desk, (model.library, conversation.digest()), about, agent)
    rows = rows or ([] if after else _videos(library, _named_before(library, conversation)))
    about_ids = [row.video_id for row in rows]
    moments = await desk.pictures.moments(model.library, conversation.pictures, about_ids, own.where)
    question = _question(text, own.options, moments, len(conversation.pictures))
    video_ids = [row.video_id for row in rows] or list(dict.fromkeys(each.video_id for each in moments))
    if await request.is_disconnected():
        raise RequestRefused("the client did not wait", status=CLIENT_LEFT)
    asked = own.request(
        desk.questions, model.library, question if after else replace(question, earlier=conversation.earlier)
    )
    running = desk.questions.start(replace(asked, agent=agent, videos=tuple(video_ids), after=after))
    about = frozenset(video_ids or (desk.questions.kept.find(after).videos if after else ()))
    return Asked(running, body.model, library, moments, own, about, str(request.base_url))


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
        try:
            found = found or library.video(name)
        except UnknownVideo:
            raise RequestRefused(
                f"got the video {name[:100]!r}, which this library does not hold, or holds more than once; name an "
                "indexed video by its id, its title or its path: nothing is fetched from an address or read from the "
                "request",
                "messages",
                "video_not_found",
            ) from None
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
    """The key of a question from `q12`, or from an id that a client was given for it."""
    if name is None:
        return None
    key = PREFIX.sub("", name)
    if not KEY.fullmatch(key):
        raise RequestRefused(
            f"got after={name[:40]!r}; give the id of an earlier completion or response, or its key", "kinodex.after"
        )
    return key


def _followed(desk: Desk, place: tuple[int, str], videos: frozenset[str], agent: str) -> str | None:
    """Key of the question that a conversation goes on from, by its words and the videos that it names, if any.

    Raises RequestRefused where it could be one of several: another client's answer is not guessed.
    """
    known = desk.answered.get(place, [])
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


def remember(desk: Desk, asked: Asked, conversation: Conversation, answer: Answer) -> None:
    """Note an answer for the question that may follow it; an equal one before is not needed any more."""
    request = asked.running.request
    told = Told(asked.running.key, asked.videos, replace(request, videos=(), after=None))
    place = request.library, conversation.digest(write(asked, answer).text)
    others = [each for each in desk.answered.pop(place, []) if not each.is_like(told)]
    desk.answered[place] = [*others, told][-REMEMBERED:]
    if len(desk.answered) > REMEMBERED:
        desk.answered.popitem(last=False)


# The answer in words, with its film and times and links to them, and as data under `kinodex`.

NO_ANSWER = {
    "insufficient_evidence": "No answer: what the agent saw does not show it.",
    "budget_exhausted": "No answer: the budget was spent before there was one.",
    "invalid": "No answer: no reply of the model could be used.",
}
CITED = 5


@dataclass(frozen=True, slots=True)
class Citation:
    """A place of a written answer, `text[start_index:end_index]`, and the page of the film at that second."""

    start_index: int
    end_index: int
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Written:
    text: str
    citations: tuple[Citation, ...] = ()


def write(asked: Asked, answer: Answer) -> Written:
    """An answer with the first ranges of its evidence; one to options begins with the letter, as programs expect."""
    options = asked.running.request.question.options
    if answer.option is not None:
        text = f"{answer.letter}. {options[answer.option]}"
    else:
        text = answer.text or NO_ANSWER.get(answer.status, "No answer.")
    whole = len(text)
    is_cited = bool(answer.evidence) and (not options if asked.own.cite is None else asked.own.cite)
    citations = []
    for number, each in enumerate(answer.evidence[:CITED]):
        title = asked.library.video(each.video_id).title
        place = f"{title} {clock(each.start_s)} to {clock(each.end_s)}"
        if is_cited:
            text += (", " if number else "\n\nSeen in ") + place
        span = (len(text) - len(place), len(text)) if is_cited else (0, whole)
        page = f"#/library/{asked.running.request.library}/video/{quote(each.video_id)}/{each.start_s:g}"
        citations.append(Citation(*span, place, f"{asked.site}{page}"))
    more = f" and {len(answer.evidence) - CITED} more" if len(answer.evidence) > CITED else ""
    return Written(f"{text}{more}." if is_cited else text, tuple(citations))


def own_fields(asked: Asked, answer: Answer) -> dict[str, Any]:
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


# Names of models: a library and an agent, `films:eea`, or the library alone for the server's own agent.

SEPARATOR = ":"
OFFERED = 12
"""Names that an error lists."""


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
    """All models of the named libraries: each alone, and with each agent that sees videos and can be asked here."""
    offered = [own, *(each for each in VARIANTS if has_language or not each.needs_language)]
    agents = dict.fromkeys(each.name for each in offered if each.sees_video)
    return [
        ChatModel(name if agent is None else f"{name}{SEPARATOR}{agent}", number, agent)
        for number, name in enumerate(names)
        for agent in (None, *agents)
    ]


def find_model(models: Sequence[ChatModel], name: str) -> ChatModel:
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

    async def moments(
        self, library: int, urls: Sequence[str], video_ids: Sequence[str], condition: str | None = None
    ) -> list[Moment]:
        """The moments of these videos (none: all) that pictures are most like; raises RequestRefused or SpaceError."""
        if not urls:
            return []
        chosen = spread(urls)
        async with self._turn:
            return await asyncio.to_thread(self._search, library, chosen, tuple(video_ids), condition)

    def _search(
        self, number: int, urls: Sequence[str], video_ids: tuple[str, ...], condition: str | None
    ) -> list[Moment]:
        if number not in self._finders:
            self._finders[number] = Finder(Library.open(self.uris[number]), self.space)
        finder = self._finders[number]
        limits: dict[str, Any] = {"k": MOMENTS, "min_gap_s": MIN_GAP_S, "condition": condition}
        pictures = map(read_picture, urls)  # one at a time: decoded, each may take 180 MB
        hits = [hit for each in pictures for hit in finder.find(Query("", each, "pictures", video_ids, **limits))]
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
    named = "; ".join(f"{each.title!r} at {player_clock(each.time_s)}" for each in moments)
    what = "a picture; it is" if pictures == 1 else f"{pictures} pictures; they are"
    return f"With the question came {what} most like these moments: {named}."
