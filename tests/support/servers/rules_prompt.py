"""A request read from the wire: the rendered text, and the pictures with the text before each."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kinodex.agent.protocol.question import Question
from kinodex.index.kinds import KINDS
from tests.support.servers.chat_server import callable_tools

_TIMES = r"(-?[\d.]+) s (?:to|-) (-?[\d.]+) s"
_UNTIL = re.DOTALL | re.MULTILINE
_QUESTION = re.compile(r"^Question: (.*?)\n(?:Options:\n(.*?)(?:\n\n|\Z)|There are no options)", _UNTIL)
_OPTION = re.compile(r"^([A-Z])\. (.*?)(?=^[A-Z]\. |\Z)", _UNTIL)
_CLOCK = r"(?: \([\d:]+(?: to [\d:]+)?\))?"
_FRAME = re.compile(rf"^frame (\d+) at (-?[\d.]+) s{_CLOCK}(?: of video (\S+))?$")
_NEW = re.compile(r"Of the frames only frames? (\d+)(?: to (\d+))? (?:is|are) new")
_ONE_VIDEO = re.compile(rf"^The video lasts [\d.]+ s, from {_TIMES}", re.MULTILINE)
_VIDEO = re.compile(rf'^- video (\S+) \(".*"\), {_TIMES}$', re.MULTILINE)
_SEGMENT = re.compile(rf"^- Segment (\d+)(?: of video (\S+))?: {_TIMES}{_CLOCK}([^:\n]*)", re.MULTILINE)
_SCORE = re.compile(r", score ([\d.]+)")
_NOTE = re.compile(
    rf"^(\d+)\. {_TIMES}(?: of video (\S+))?(?: \((?:([a-z_][^()]*?)(?:, confidence )?)?([\d.]+)?\))?: (.*)$",
    re.MULTILINE,
)
"""A caption of a bank has no source, and its confidence alone in brackets."""

_CHAPTER = re.compile(
    rf"^- {_TIMES}{_CLOCK}(?: of video (\S+))? \((?:scene|chapter)\): (.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Frame:
    """A picture as it arrived, with the number and time that were said before it."""

    number: int
    time_s: float
    video: str
    jpeg: bytes


@dataclass(frozen=True)
class Part:
    """A line of a list: a segment, a note or a video, with its number and its range [start_s, end_s)."""

    number: int
    start_s: float
    end_s: float
    video: str = ""
    text: str = ""
    source: str = ""
    score: float = 1.0
    """Of a segment; a note's confidence, 1 where none is given."""
    open: bool = True
    again: bool = False
    """Whether it has been looked into before."""


@dataclass(frozen=True)
class Asked:
    """One chat request. `texts` are its messages but the model's own; `said` are the model's own."""

    reply: str
    fields: frozenset[str]
    texts: tuple[str, ...]
    said: tuple[str, ...]
    frames: tuple[Frame, ...]
    tools: frozenset[str]

    @property
    def text(self) -> str:
        return self.texts[0]

    @property
    def question(self) -> Question:
        found = _QUESTION.search(self.text)
        if found is None:
            return Question(self.line("Wanted") or self.line("What is looked for") or "?")
        options = tuple(each[2].strip() for each in _OPTION.finditer(found[2] or ""))
        return Question(found[1].strip(), options)

    @property
    def videos(self) -> list[Part]:
        one = _ONE_VIDEO.search(self.text)
        if one:
            return [Part(1, float(one[1]), float(one[2]))]
        listed = enumerate(_VIDEO.finditer(self.text), start=1)
        return [Part(number, float(each[2]), float(each[3]), each[1]) for number, each in listed]

    @property
    def segments(self) -> list[Part]:
        """Those that the request is about, without those that are there to compare."""
        before, mark, after = self.text.partition("segments to be scored:")
        return [_segment(each) for each in _SEGMENT.finditer(after.partition("\n\n")[0] if mark else before)]

    @property
    def notes(self) -> list[Part]:
        """Of all messages, each number once, the last line that gives it."""
        found = {note.number: note for text in self.texts for note in _notes(text)}
        return [found[number] for number in sorted(found)]

    @property
    def chapters(self) -> list[Part]:
        """Scenes or chapters that the first message lists as a table of contents."""
        found = enumerate(_CHAPTER.finditer(self.text), start=1)
        return [Part(number, float(each[1]), float(each[2]), each[3] or "", each[4]) for number, each in found]

    @property
    def new_frames(self) -> range:
        """The numbers of the frames that are said to be new; empty where none is."""
        found = _NEW.search(self.text)
        return range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)

    def line(self, name: str) -> str:
        """The rest of the line "NAME: ..."; "" if there is none."""
        found = re.search(rf"^{re.escape(name)}: (.*)$", self.text, re.MULTILINE)
        return found[1].strip() if found else ""

    def number(self, pattern: str, default: int) -> int:
        """The number that a pattern finds in the text."""
        found = re.search(pattern, self.text)
        return int(found[1]) if found else default


def read(body: dict) -> Asked:
    """The request in a chat completion's JSON body."""
    asked = body.get("response_format", {}).get("json_schema", {})
    texts, said, frames = [], [], []
    for message in body["messages"]:
        content = message["content"] or ""
        if message["role"] == "assistant":
            said.append(content if isinstance(content, str) else "")
            continue
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text, shown = _split(parts)
        texts.append(text)
        frames += shown
    name, keys = asked.get("name", ""), frozenset(asked.get("schema", {}).get("properties", ()))
    return Asked(
        name,
        keys,
        tuple(texts),
        tuple(said),
        tuple(frames),
        callable_tools(body),
    )


def _split(parts: list[dict]) -> tuple[str, list[Frame]]:
    """The text of a message's parts, and its pictures with the labels before them."""
    texts: list[str] = []
    frames: list[Frame] = []
    for part in parts:
        if part["type"] == "text":
            texts.append(part["text"])
        elif label := _FRAME.match(texts.pop()):
            jpeg = base64.b64decode(part["image_url"]["url"].partition(",")[2])
            frames.append(Frame(int(label[1]), float(label[2]), label[3] or "", jpeg))
    return "\n\n".join(texts), frames


def _segment(line: re.Match[str]) -> Part:
    scored = _SCORE.search(line[5])
    return Part(
        int(line[1]),
        float(line[3]),
        float(line[4]),
        line[2] or "",
        score=float(scored[1]) if scored else 0.0,
        open="nothing left to see" not in line[5],
        again="looked into before" in line[5],
    )


_SOURCES = {kind.quote: kind.name for kind in KINDS.values() if kind.quote}
"""The names of kinds, by the words with which prompts quote them."""


def _notes(text: str) -> Iterator[Part]:
    for each in _NOTE.finditer(text):
        sure = 1.0 if each[6] is None else float(each[6])
        yield Part(
            int(each[1]),
            float(each[2]),
            float(each[3]),
            each[4] or "",
            each[7],
            _SOURCES.get(each[5] or "caption", each[5]),
            sure,
        )
