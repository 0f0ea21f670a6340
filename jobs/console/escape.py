"""Text of files and servers on a terminal: it cannot break a line or steer the terminal, and shows no secret."""

from __future__ import annotations

import io
import re
from typing import TextIO

from index.redact import redact

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs, changes of writing direction, halves of characters."""


def visible(text: str) -> str:
    """A text in one line without secrets, each invisible character as its escape: a line break as `\\n`."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), redact(text))


def visible_lines(text: str) -> str:
    """Escape all but the line breaks of a text."""
    return "\n".join(map(visible, text.split("\n")))


def is_utf8(stream: TextIO) -> bool:
    """True for a stream that can write any text."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") in ("utf8", "utf8sig")


def write_any_text(*streams: TextIO) -> None:
    """Have streams write what their encoding lacks as escapes: a locale without UTF-8 is no reason to fail."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not is_utf8(stream)):
            stream.reconfigure(errors="backslashreplace")
