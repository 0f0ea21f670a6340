"""Parse JSON of libraries, models, servers and files up to a depth; a deeper value would end its readers' recursion."""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEPTH = 100
"""Lists and objects within each other; the deepest reply of a known server has nine."""
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON of bounded depth by `json.loads`; raises ValueError (json.JSONDecodeError) for a deeper one too."""
    content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if is_deep(content):
        raise json.JSONDecodeError(f"nested more than {MOST_DEPTH} deep", "", 0)
    return json.loads(text, **options)


def is_deep(content: bytes) -> bool:
    """True if JSON, as it is written, has more brackets open at once than is allowed; strings do not count."""
    if sum(content.count(each) for each in _OPENING) <= MOST_DEPTH:
        return False
    import numpy as np  # which is not needed for what is written every day

    codes = np.frombuffer(_STRING.sub(b"", content), np.uint8)
    opened, closed = (np.isin(codes, np.frombuffer(each, np.uint8)).astype(np.int32) for each in (_OPENING, _CLOSING))
    return bool(np.cumsum(opened - closed).max(initial=0) > MOST_DEPTH)


def is_deep_value(value: object) -> bool:
    """True for a value of JSON that is nested deeper than is allowed."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        inner = [each for outer in level for each in (outer.values() if isinstance(outer, dict) else outer)]
        level = [each for each in inner if isinstance(each, dict | list)]
    return bool(level)
