"""The messages of a request: the question, what was said before it, and the pictures and videos that come with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core.question import Earlier
from jobs.serve.openai.chat_request import CHARACTERS, ChatRequest, Message
from jobs.serve.openai.errors import RequestRefused

EARLIER = 8
"""Turns before the question that are told to an agent, where the server does not know their answers' evidence."""
PICTURES = ("image_url", "input_image", "image")
VIDEOS = ("video_url", "input_video", "video", "file", "input_file")
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
        _sent(turns[start:], PICTURES),
        _sent(turns[start:], VIDEOS),
        tuple((each.role, _text(each), _sent([each], PICTURES), _sent([each], VIDEOS)) for each in turns[:start]),
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
        if kind not in (*TEXTS, *PICTURES, *VIDEOS, "refusal"):
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
