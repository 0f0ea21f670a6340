"""Refusals in words: a model that will not look writes that it is sorry where a description was asked for.

Such a text fits the schema of a caption. Taken for one, it would be stored, searched and cited.
"""

from __future__ import annotations

import re

from agent.errors import InvalidReply

_SORRY = r"(?:(?:i|we)['’]?(?:m|re)|i am|we are)\s+(?:(?:very|so)\s+)?(?:sorry|afraid|unable|not (?:able|allowed))\b"
_CANNOT = r"(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|must decline|(?:don['’]?t|do not) feel)\b"
_MODEL = r"as an? (?:ai|artificial|language|large language)\b"
_REFUSAL = re.compile(rf"\W*(?:(?:sorry|apologies)\b|{_SORRY}|{_CANNOT}|{_MODEL})", re.IGNORECASE)


def check_not_refused(text: str) -> None:
    """Raise `InvalidReply` for a description that begins as refusals do; nothing seen is ever described so."""
    if _REFUSAL.match(text):
        raise InvalidReply("that is a refusal, not a description; say what is seen, and leave out what you may not say")
