"""Texts that are no UTF-8: arguments with foreign bytes, and JSON with halves of characters, hold lone surrogates."""

from __future__ import annotations

from kinodex.index.errors import QueryError

TYPE_IT = "type it where the locale is UTF-8, such as LC_ALL=C.UTF-8"


def checked_text(text: str, advice: str = TYPE_IT) -> str:
    """Return a text; raises QueryError, which ends in the advice, for one that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"got {text!r}, which is not UTF-8; {advice}") from error
    return text
