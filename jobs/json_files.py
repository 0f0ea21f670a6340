"""Files of JSON that are read strictly, and files that are written whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError too for an object with two values of one name, of which Python takes the last."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if found[name] != value:
                raise ValueError(f"{name!r} stands twice in an object, with different values")
    return found


def first_defect(error: ValidationError) -> str:
    """Describe the first defect of a file in one line: the field, if it is one of a field, and what is wrong."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it exists whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
