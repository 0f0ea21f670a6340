"""KinodexError, the root of all errors that a user can correct, with those of libraries and embedding spaces.

Each message is one line for a person to read. Other rooms derive their own from the root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast, get_type_hints

from kinodex.index.nesting import parse_json
from kinodex.index.text import redact_values


class KinodexError(Exception):
    """An error that the user can correct; the message is one clear line, without the secrets that made it."""

    def __init__(self, *values: object) -> None:
        super().__init__(*redact_values(values))


class LibraryError(KinodexError):
    """A library that cannot be opened, written or searched."""


class NotALibrary(LibraryError):
    """The place holds something else, or nothing."""


class NewerLibrary(LibraryError):
    """The library was written by a later kinodex than this one."""


class LibraryBusy(LibraryError):
    """Another run does now what only one run may do at a time."""


class LeaseLost(LibraryError):
    """Another run took over the lease of this one; nothing more may be written."""


class SettingsMismatch(LibraryError):
    """The library was made with other ingest settings."""


class SpaceMismatch(LibraryError):
    """The library was made with another embedding space."""


class UnknownVideo(LibraryError):
    """No video, or more than one, has that name."""


class TimeOutside(LibraryError):
    """A time or frame number that the video does not have."""


class DamagedRows(LibraryError):
    """Stored pictures or vectors that are not as they were written."""


class QueryError(LibraryError):
    """A search or a reading that cannot be run: nothing to look for, an unknown column, an impossible range."""


class MetadataConflict(LibraryError):
    """A column of metadata that cannot be: its name, a value, or values of two types."""


class StorageFull(LibraryError):
    """No room is left where the library lives."""


class UnsafeStore(LibraryError):
    """An object store that loses one of two commits made at once."""


class StorageError(LibraryError):
    """The place where the library lives cannot be read or written."""


class LibraryDamaged(StorageError):
    """A part of the library is missing, cut off or altered; nothing was changed."""


class SpaceError(KinodexError):
    """An embedding space that cannot be loaded."""


class UnknownModel(SpaceError):
    """A model name or pretrained tag that open_clip does not know."""


class WeightsMissing(SpaceError):
    """A known model whose weights or tokenizer are missing here."""


class ModelNotNamed(WeightsMissing):
    """A model that a library names and the user does not."""


class BadCheckpoint(SpaceError):
    """A file that does not hold the weights of this model."""


class DeviceMissing(SpaceError):
    """A device that this machine does not have."""


class TorchMissing(SpaceError):
    """A model that only torch and open_clip can run here, where they are not installed."""


class ExportRefused(SpaceError):
    """A tower that cannot be exported, or whose export does not give the same vectors."""


class TowersDamaged(SpaceError):
    """Files of exported towers that are missing, cut off, or written by a later kinodex."""


# Texts that are no UTF-8: arguments with foreign bytes, and JSON with halves of characters, hold lone surrogates.

TYPE_IT = "type it where the locale is UTF-8, such as LC_ALL=C.UTF-8"


def checked_text(text: str, advice: str = TYPE_IT) -> str:
    """Return a text; raises QueryError, which ends in the advice, for one that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"got {text!r}, which is not UTF-8; {advice}") from error
    return text


# JSON that a library or a cache holds: read within bounds, and checked, for anybody may have written it.

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
