"""The messages of a request in OpenAI's form: the question, its options, pictures and videos, and what came before.

Chat completions and responses write the same messages in two ways; both are read here. Nothing is fetched or opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from kinodex.agent.protocol.question import Earlier
from kinodex.web.openai.errors import RequestRefused

CHARACTERS = 200_000
"""Of all texts of a request."""
MESSAGES = 1000
Speaker = Literal["system", "developer", "user", "assistant", "tool", "function"]
Parts = str | list[dict[str, Any]] | None


class Message(BaseModel):
    role: Speaker
    content: Parts = None


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
        """Return the name of the turns before the question; with the `content` of a reply, of all turns up to it."""
        asked = ("user", self.question, self.pictures, self.videos)
        turns = self.turns if content is None else (*self.turns, asked, ("assistant", content, (), ()))
        written = json.dumps([(role, text.strip(), *sent) for role, text, *sent in turns])
        return hashlib.sha256(written.encode()).hexdigest()


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """Read the messages of a request; raises RequestRefused for parts that cannot be understood here.

    Calls of tools and their results are left out: another model's, for the agents call none of a client's.
    """
    if not messages or messages[-1].role != "user":
        raise RequestRefused("the last message has to be the user's: it is the question", "messages")
    instructions = [_text(each) for each in messages if each.role in ("system", "developer")]
    said = [each for each in messages if each.role == "user" or (each.role == "assistant" and _text(each))]
    start = len(said)
    while start and said[start - 1].role == "user":
        start -= 1
    question = "\n".join(filter(None, map(_text, said[start:])))
    if sum(len(_text(each)) for each in messages) > CHARACTERS:
        raise RequestRefused(f"the messages have more than {CHARACTERS:,} characters", "messages")
    return Conversation(
        question.strip(),
        _sent(said[start:], PICTURE_PARTS),
        _sent(said[start:], VIDEO_PARTS),
        tuple(
            (each.role, _text(each), _sent([each], PICTURE_PARTS), _sent([each], VIDEO_PARTS)) for each in said[:start]
        ),
        "\n".join(instructions),
    )


def _text(message: Message) -> str:
    return "\n".join(part["text"] for part in _parts(message) if part["type"] in TEXTS)


def _parts(message: Message) -> Sequence[dict[str, Any]]:
    """Return the parts of a message, each of a kind that is known here."""
    if message.content is None or isinstance(message.content, str):
        return [{"type": "text", "text": message.content or ""}]
    for part in message.content:
        kind = part.get("type")
        if kind not in (*TEXTS, *PICTURE_PARTS, *VIDEO_PARTS, "refusal"):
            raise RequestRefused(
                f"got a part of type {kind!r}; parts are text, image_url (only data:) and video_url (the name of a "
                "video that is indexed here)",
                "messages",
            )
        if kind in TEXTS and not isinstance(part.get("text"), str):
            raise RequestRefused(f"got a part of type {kind!r} without a text", "messages")
    return message.content


def _sent(messages: Iterable[Message], kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(_url(part, kinds) for each in messages for part in _parts(each) if part["type"] in kinds)


def _url(part: dict[str, Any], kinds: Iterable[str]) -> str:
    """Return the address or name in a part: `{"type": T, T: {"url": U}}`, `{"type": T, T: U}`, or a file's name."""
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
