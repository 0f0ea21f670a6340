"""Settings of a stage as users give them: checked, and refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from kinodex.errors import KinodexError
from kinodex.jobs.add.stage import S, option_of
from kinodex.jobs.errors import UsageError


def read_settings(kind: type[S], command: str, given: Mapping[str, Any]) -> S:
    """Make a stage of settings by name; raises UsageError for one that it has not, or that makes no sense."""
    known = [name for name, field in kind.model_fields.items() if not field.exclude]
    unknown = [name for name in given if name not in kind.model_fields]
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"got {unknown[0]}, which is no setting of {command}; {hint}they are {', '.join(known)}")
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        if isinstance(cause := first.get("ctx", {}).get("error"), KinodexError):
            raise cause from error
        name = str(first["loc"][0]) if first["loc"] else command
        if first["type"] == "missing":
            raise UsageError(f"got no {option_of(kind, name)} to add {command}; name one") from error
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"got {option_of(kind, name)} {first['input']!r}; {said[0].lower()}{said[1:]}") from error
