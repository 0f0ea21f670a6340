"""Text of files on a terminal: what would break a line or steer the terminal is spelled out."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs, what turns the direction of writing, halves of characters."""


def visible(text: str) -> str:
    """A text in one line, each character that is unseen as its escape: a line break as `\\n`."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_lines(text: str) -> str:
    """The same of a text whose line breaks are meant."""
    return "\n".join(map(visible, text.split("\n")))
