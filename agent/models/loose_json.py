"""JSON in a text, as models write it: found among other words, and read where it is beyond doubt what is meant.

Read are line breaks within a text, a comma before a bracket, Python's quotes and words. Nothing is repaired: repairing
completes a reply that was cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kinodex.agent.errors import InvalidReply
from kinodex.agent.replies.thoughts import after_thought
from kinodex.index.nesting import MOST_DEPTH, is_deep_value


def json_values(text: str) -> Iterator[object]:
    """Yield every outermost object and array of JSON in a text, in order, with any text around them.

    The thoughts of a reasoning model are left out. Raises `InvalidReply` at JSON that
    breaks off: the values inside it are parts of a reply, not a reply.
    """
    text = after_thought(text)
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        at = opening.start()
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            end = _closing(text, at)
            if _OBJECT.match(text, at):
                value, at = _loosely(text[at:end], error), end
            # A quote right after the bracket opens a text that never ends.
            elif text[at + 1 : error.pos].strip() or text[error.pos : error.pos + 1] == '"':
                raise _malformed(error) from error
            else:
                at += 1  # a bracket of prose, not of JSON
                continue
        except (RecursionError, ValueError) as error:
            raise InvalidReply("its JSON is nested too deeply or holds a number of thousands of digits") from error
        if is_deep_value(value):
            raise InvalidReply(f"its JSON is nested more than {MOST_DEPTH} deep")
        yield value


def _loosely(text: str, error: json.JSONDecodeError) -> object:
    """Decode an object with commas before brackets, or with the quotes and words of Python."""

    def as_json(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] in "'“":
            inner = re.sub(r"\\(['“”])", r"\1", token[1:-1])
            return '"' + re.sub(r'(?<!\\)"', r'\\"', inner) + '"'
        return _WORDS_OF_PYTHON.get(token, "" if token[0] == "," else token)

    try:
        return _DECODER.decode(TOKEN.sub(as_json, text))
    except json.JSONDecodeError:
        raise _malformed(error) from error


def _closing(text: str, start: int) -> int:
    """Return the place after the bracket that closes the one at `start`, or the end of the text."""
    depth = 0
    for match in TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
        if depth == 0 and match[0] in "}]":
            return match.end()
    return len(text)


def _malformed(error: json.JSONDecodeError) -> InvalidReply:
    return InvalidReply(f"its JSON breaks off or is malformed: {error.msg} at character {error.pos}")


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys stand once, whatever their case; JSON would take the last value in silence."""
    given: dict[str, object] = {}
    for name, value in pairs:
        if given.setdefault(name.casefold(), value) != value:
            raise InvalidReply(f"it gives {name[:60]!r} twice, with different values")
    return dict(pairs)


def _refuse_constant(name: str) -> object:
    raise InvalidReply(f"it holds {name}, which is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_doubles, strict=False)
_OPENING = re.compile(r"[{\[]")
_OBJECT = re.compile(r"\{\s*[\"'“]|\[\s*\{")
"""The beginning of an object with names, or of a list of objects."""
TOKEN = re.compile(
    r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\]++|\\.)*+\'|“(?:[^”\\]++|\\.)*+”|,(?=\s*[}\]])|[{}\[\]]|\b(?:None|True|False)\b',
    re.DOTALL,
)
_WORDS_OF_PYTHON = {"None": "null", "True": "true", "False": "false"}
