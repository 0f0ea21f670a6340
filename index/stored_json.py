"""JSON that a library or a cache holds: read within bounds, and checked, for anybody may have written it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast, get_type_hints

from kinodex.index.errors import LibraryDamaged
from kinodex.index.nesting import parse_json

MOST_CHARACTERS = 256 << 20
"""The report of a run of ten thousand sources that failed has some millions."""
SHOWN_LETTERS = 200
LARGEST = 1e300
"""Of numbers; NaN is not less either."""
Facts = TypeVar("Facts")


def read_json(text: str | bytes, what: str) -> Any:
    """Read a value of JSON; raises LibraryDamaged, which says of what."""
    try:
        plain = text.decode() if isinstance(text, bytes) else text
        if len(plain) > MOST_CHARACTERS:
            raise ValueError(f"it has {len(plain):,} characters")
        value = parse_json(plain)
        if "\\u" in plain:
            json.dumps(value, ensure_ascii=False).encode()  # halves of characters cannot be written again
    except (ValueError, TypeError) as error:
        raise altered(what, str(error)) from error
    return value


def read_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Read an object of JSON; raises LibraryDamaged."""
    value = read_json(text, what)
    if not isinstance(value, dict):
        raise altered(what, f"it is no object, but {str(value)[:SHOWN_LETTERS]}")
    return value


def read_facts(kind: type[Facts], text: str | bytes, what: str) -> Facts:
    """Read an object of JSON into a dataclass; raises LibraryDamaged for a field that is missing or of another type."""
    return facts_of(kind, read_object(text, what), what)


def facts_of(kind: type[Facts], values: Mapping[str, Any], what: str) -> Facts:
    """Make a dataclass of plain fields from values; raises LibraryDamaged."""
    types, chosen = get_type_hints(kind), {}
    known = fields(cast(Any, kind))
    if unknown := values.keys() - {field.name for field in known}:
        raise altered(what, f"it has a field {min(unknown)}")
    for field in known:
        if field.name in values:
            chosen[field.name] = _checked(values[field.name], types[field.name], f"{what}: {field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise altered(what, f"it has no {field.name}")
    return kind(**chosen)


def number_of(values: Mapping[str, Any], name: str, usual: float, what: str) -> float:
    """Read a number above 0 of an object, or the usual one where it is not there; raises LibraryDamaged."""
    value = _checked(values.get(name, usual), float, f"{what}: {name}")
    if value <= 0:
        raise altered(f"{what}: {name}", f"it is {value}")
    return float(value)


def altered(what: str, why: str) -> LibraryDamaged:
    """Make the error of something that is not as kinodex writes it."""
    return LibraryDamaged(
        f"cannot read {what}: it is not what was written ({why[:SHOWN_LETTERS]}); restore it from a copy"
    )


def _checked(value: Any, kind: Any, what: str) -> Any:
    if kind is float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST:
            return value
    elif kind in (str, int, bool):
        if type(value) is kind:
            return value
    elif isinstance(value, Mapping):
        return value
    raise altered(what, f"it is {str(value)[:SHOWN_LETTERS]!r}")
