"""A question, begun for the messages of a client of OpenAI's API.

Models go by name, conversations go on, and pictures are searches. Nothing that a request names is ever fetched or
opened.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kinodex.agent.protocol.question import Question
from kinodex.index.errors import UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.eval.rows import make_question
from kinodex.requests import Ask
from kinodex.server.responses import CLIENT_LEFT
from kinodex.web.kept_traces import KEY
from kinodex.web.openai.errors import RequestRefused
from kinodex.web.openai.messages import Conversation
from kinodex.web.openai.models import ChatModel, find_model
from kinodex.web.openai.option_texts import read_options
from kinodex.web.openai.own_fields import OwnFields
from kinodex.web.openai.picture_search import Moment, PictureSearch, in_words
from kinodex.web.openai.video_lines import take_videos
from kinodex.web.questions import Questions
from kinodex.web.running import Running
from kinodex.web.sentences import end_sentence, round_sentences

if TYPE_CHECKING:
    from starlette.requests import Request

REMEMBERED = 1000
"""Conversations whose next question is taken for one that follows."""
PREFIX = re.compile(r"^(chatcmpl-|resp_|msg_)")
"""Beginnings of the ids that a client was given: of a completion, of a response and of its message."""


@dataclass(frozen=True, slots=True)
class ChatDesk:
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
    asked: Ask
    """Without videos and what it followed."""

    def is_like(self, other: Told) -> bool:
        """Return True if who goes on from the other may as well go on from this."""
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


async def begin(desk: ChatDesk, name: str, own: OwnFields, conversation: Conversation, request: Request) -> Asked:
    """Begin the question of a request to the model of this name; raises what is wrong with it."""
    model = find_model(desk.models, name)
    library = desk.libraries[model.library].where(own.request.where)
    videos = _videos(library, (*own.request.videos, *conversation.videos))
    text, named = take_videos(conversation.question, lambda name: _find(library, name) is not None)
    _, by_system = take_videos(conversation.instructions, lambda name: _find(library, name) is not None)
    rows = videos or _videos(library, named or by_system)
    agent = own.request.agent or model.agent or desk.questions.settings.agent.name
    about = frozenset(row.video_id for row in rows)
    earlier = _key(own.request.follow_up) or _followed(desk, (model.library, conversation.digest()), about, agent)
    rows = rows or ([] if earlier else _videos(library, _named_before(library, conversation)))
    about_ids = [row.video_id for row in rows]
    moments = await desk.pictures.moments(model.library, conversation.pictures, about_ids, own.request.where)
    question = _question(text, own.options, moments, len(conversation.pictures))
    video_ids = [row.video_id for row in rows] or list(dict.fromkeys(each.video_id for each in moments))
    if await request.is_disconnected():
        raise RequestRefused("the client did not wait", status=CLIENT_LEFT)
    asked = own.request.model_copy(
        update={
            "question": question.text,
            "options": question.options,
            "earlier": () if earlier else conversation.earlier,
            "agent": agent,
            "videos": tuple(video_ids),
            "follow_up": earlier,
        }
    )
    running = desk.questions.start(model.library, asked)
    about = frozenset(video_ids or (desk.questions.kept.find(earlier).videos if earlier else ()))
    return Asked(running, name, library, moments, own, about, str(request.base_url))


def _question(text: str, options: Sequence[str] | None, moments: Sequence[Moment], pictures: int) -> Question:
    """Return the question of a text: options as they were given, else as they stand in it."""
    notes: list[str] = []
    if options is None:
        written = read_options(text)
        question = make_question(written.text, written.options, notes.append)
    else:
        question = Question(text.strip(), tuple(options))
    return replace(question, text=f"{question.text}\n{in_words(moments, pictures)}") if moments else question


def _named_before(library: Library, conversation: Conversation) -> tuple[str, ...]:
    """Return videos that the latest turn before the question to name any names, for a conversation that is not known
    here.
    """
    for role, text, _, videos in reversed(conversation.turns):
        named = videos or take_videos(text, lambda name: _find(library, name) is not None)[1]
        if named and role == "user":
            return named
    return ()


def _videos(library: Library, names: Sequence[str]) -> list[VideoRow]:
    """Return the videos that a request names, each once; raises RequestRefused for one that is not indexed here."""
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
    """Return the names under which a video may be known.

    A kit sends the path of its own copy, whose file has the same name.
    """
    path = unquote(urlsplit(name).path) if name.startswith("file://") else name
    apart = [PurePosixPath(path).name] if path.startswith("/") else []
    return list(dict.fromkeys(each for each in (name, path, *apart) if each))


def _find(library: Library, name: str) -> VideoRow | None:
    """Return the one video of a whole name, else None: a part of a title could be any word of a question."""
    try:
        return library.video(name, whole_name=True)
    except UnknownVideo:
        return None


def _key(name: str | None) -> str | None:
    """Return the key of a question from `q12`, or from an id that a client was given for it."""
    if name is None:
        return None
    key = PREFIX.sub("", name)
    if not KEY.fullmatch(key):
        raise RequestRefused(
            f"got follow_up={name[:40]!r}; give the id of an earlier completion or response, or its key",
            "kinodex.follow_up",
        )
    return key


def _followed(desk: ChatDesk, place: tuple[int, str], videos: frozenset[str], agent: str) -> str | None:
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
            f"one that you go on with, kinodex.follow_up={' or '.join(each.key for each in about[-8:])}, or its videos",
            "kinodex.follow_up",
            "ambiguous_conversation",
        )
    return about[-1].key if about else None


def remember(desk: ChatDesk, asked: Asked, conversation: Conversation, text: str) -> None:
    """Note the text of an answer for the question that may follow it; an equal one before is not needed any more."""
    request = asked.running.request
    told = Told(asked.running.key, asked.videos, request.model_copy(update={"videos": (), "follow_up": None}))
    place = asked.running.library, conversation.digest(text)
    others = [each for each in desk.answered.pop(place, []) if not each.is_like(told)]
    desk.answered[place] = [*others, told][-REMEMBERED:]
    if len(desk.answered) > REMEMBERED:
        desk.answered.popitem(last=False)
