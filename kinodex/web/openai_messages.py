"""The messages of a request in OpenAI's form: the question, its options, pictures and videos, and what came before.

Chat completions and responses write the same messages in two ways; both are read here. Nothing is fetched or opened.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from kinodex.agent.protocol.question import Earlier
from kinodex.jobs.errors import UsageError

CHARACTERS = 200_000
"""Of all texts of a request."""
MESSAGES = 1000
Speaker = Literal["system", "developer", "user", "assistant", "tool", "function"]
Parts = str | list[dict[str, Any]] | None


class RequestRefused(UsageError):
    """A request in OpenAI's form that cannot be answered: the parameter at fault, a code, and the HTTP status."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


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
        """Name of the turns before the question; with the `content` of a reply, of all turns up to it."""
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
    """Take lines "video: NAME" of known videos out of a text; any other such line may be part of the question."""
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
