"""JSON of models, servers and files, parsed within limits.

A deeper value ends the recursion of whoever walks it, and Python refuses a number of thousands of digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MOST_DEPTH = 100
"""Lists and objects within each other; the deepest reply of a known server has nine."""
MOST_DIGITS = 1000
"""Of a number. Python turns no text of more than 4300 digits into one."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MOST_DIGITS + 1))
_OPENING, _CLOSING = b"[{", b"]}"
_BLANK = b" \t\r\n\xef\xbb\xbf"
"""What may stand before a value of JSON: white space, and the mark of UTF-8."""


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON within the limits by `json.loads`; raises ValueError (json.JSONDecodeError) beyond them too."""
    content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if (excess := json_excess(content)) is not None:
        raise json.JSONDecodeError(excess, "", 0)
    return json.loads(text, **options)


def json_excess(content: bytes) -> str | None:
    """Say by what JSON, in any encoding that `json.loads` takes, is beyond the limits; None: it is not, or no JSON."""
    encoding = json.detect_encoding(content)
    if not encoding.startswith("utf-8"):
        content = content.decode(encoding, errors="replace").lstrip("\ufeff").encode(errors="replace")
    if content.lstrip(_BLANK)[:1] not in b"{[-0123456789":
        return None
    if is_deep(content):
        return f"nested more than {MOST_DEPTH} deep"
    if _LONG_NUMBER.search(content) and _LONG_NUMBER.search(_STRING.sub(b"", content)):
        return f"with a number of more than {MOST_DIGITS} digits"
    return None


def is_deep(content: bytes) -> bool:
    """Return True if JSON, as it is written, has more brackets open at once than is allowed; strings do not count."""
    if sum(content.count(each) for each in _OPENING) <= MOST_DEPTH:
        return False
    import numpy as np  # which is not needed for what is written every day

    codes = np.frombuffer(_STRING.sub(b"", content), np.uint8)
    opened, closed = (np.isin(codes, np.frombuffer(each, np.uint8)).astype(np.int32) for each in (_OPENING, _CLOSING))
    return bool(np.cumsum(opened - closed).max(initial=0) > MOST_DEPTH)


def values_within(value: object, depth: int) -> Iterator[object]:
    """Yield a value of JSON and all values inside it, down to this many levels, each before what it holds."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner if depth else ():
        yield from values_within(each, depth - 1)


def is_deep_value(value: object) -> bool:
    """Return True for a value of JSON that is nested deeper than is allowed."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        inner = [each for outer in level for each in (outer.values() if isinstance(outer, dict) else outer)]
        level = [each for each in inner if isinstance(each, dict | list)]
    return bool(level)
