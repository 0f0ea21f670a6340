"""Videos that a question names in lines of its own, "video: NAME"."""

from __future__ import annotations

import re
from collections.abc import Callable

VIDEO = re.compile(r"^[ \t]*videos?[ \t]*[:=][ \t]*(\S.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)


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
