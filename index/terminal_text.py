"""Text of files and servers on a terminal: it cannot break a line or steer the terminal, and shows no secret."""

from __future__ import annotations

import re

from kinodex.redaction import redact

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs, changes of writing direction, halves of characters."""


def visible(text: str) -> str:
    """Return a text in one line without secrets, each invisible character as its escape: a line break as `\\n`."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), redact(text))


def visible_lines(text: str) -> str:
    """Escape all but the line breaks of a text."""
    return "\n".join(map(visible, text.split("\n")))
