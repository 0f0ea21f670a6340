"""Settings of an extract: the schema of its rows, its name, its parts, and the key of its version."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from kinodex.agent.errors import BadSettings
from kinodex.agent.prompts.rendering import FOLDER
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.requests.row_schema import read_schema
from kinodex.index.extracts import NAME
from kinodex.index.kinds import PLACES
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.index.store.schema import COMMON_COLUMNS
from kinodex.jobs.errors import UsageError

Each = Literal["video", "chapter", "scene", "shot"]
EACH = get_args(Each)
WINDOW = re.compile(r"window:(\d+(?:\.\d+)?)")
SEARCH = "search"
TAKEN = (*("videos", "segments", "lines", "additions", "failures"), *PLACES)
"""Names of tables of `kinodex sql`, and of places of `kinodex search --in`."""


def schema_text(row: Any) -> str:
    """Return the schema of rows as it is kept; raises UsageError or BadSettings."""
    return read_schema(schema_of(row), COMMON_COLUMNS).as_json()


def check_extract(into: str, part: str) -> None:
    """Raise UsageError for the name of a table, or a unit of its rows, that no extract has."""
    if not NAME.fullmatch(into) or into in TAKEN:
        raise UsageError(
            f"got the name {into!r} for a table; give small letters, digits and _, a letter first, at most 40, and "
            f"none of {', '.join(TAKEN)}"
        )
    window = WINDOW.fullmatch(part)
    if part not in (*EACH, SEARCH) and (window is None or not float(window[1])):
        raise UsageError(
            f"got --each {part}; it is one of {', '.join(EACH)}, window:SECONDS, or left out with --search"
        )


def version_key(into: str, *depends: object) -> str:
    """Return the name of a table with a digest of all that its rows depend on, the prompt included."""
    prompt = (FOLDER / f"{ExtractRows.template}.jinja").read_text(encoding="utf-8")
    return f"{into}@{hashlib.sha256(json.dumps([prompt, *depends]).encode()).hexdigest()[:8]}"


def read_schema_file(path: Path) -> object:
    """Read a JSON schema; raises UsageError."""
    try:
        return parse_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the schema {path}: {error}; give a file with a JSON schema") from error


def schema_of(row: Any) -> object:
    """Return the JSON schema of a pydantic model, or of a list of one; a schema as it is."""
    if isinstance(row, Mapping | list):
        return row
    if isinstance(row, str | Path):
        return read_schema_file(Path(row))
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(row).json_schema()
    except PydanticUserError as error:
        raise BadSettings(f"got {row!r}, of which there is no JSON schema ({error}); give a pydantic model") from error
