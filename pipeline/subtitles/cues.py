"""A line of a video's text, and the parsing of one cue's markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")  # WebVTT: <v.loud Mary>
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>")  # tags, and the time stamps of karaoke


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, spoken or shown in `[start_s, end_s)`, in the video's own presentation time."""

    start_s: float
    end_s: float
    text: str
    source: Literal["sidecar", "embedded"]
    language: str | None = None
    speaker: str | None = None


def split_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a cue into (speaker, plain text) of each voice; resolves markup and entities, leaves out empty text."""
    opening, *voices = VOICE.split(text)
    for speaker, words in [("", opening), *zip(voices[::2], voices[1::2], strict=True)]:
        plain = html.unescape(MARKUP.sub("", words)).replace("\xa0", " ")
        plain = "\n".join(line.strip() for line in plain.splitlines() if line.strip())
        if plain:
            yield html.unescape(speaker).strip() or None, plain
