"""Metadata before it meets a library: rows of tables, and a pattern of paths."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.index.library import Library
from kinodex.index.metadata import OF_VIDEOS, is_column_name
from kinodex.jobs.errors import UsageError
from kinodex.jobs.metadata.tables import table_rows
from kinodex.pipeline.filesystems import is_remote


@dataclass(frozen=True, slots=True)
class MetadataInput:
    """Metadata before it meets a library: rows of tables, each with the place it stands at, and a pattern of paths."""

    rows: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = ()
    """Place (file and row), kind of key ("pattern" or another), key, values by column."""
    pattern: re.Pattern[str] | None = None
    folders: tuple[Path, ...] = ()
    """Of the tables: paths may count from there."""

    def __bool__(self) -> bool:
        return bool(self.rows) or self.pattern is not None

    def check(self, library: Library) -> None:
        """Raise MetadataConflict, which names two rows, where values of tables do not fit the library's columns."""
        library.metadata.check({place: values for place, _, _, values in self.rows})


def read_metadata(tables: Sequence[str | Path] = (), path_pattern: str | None = None) -> MetadataInput:
    """Read tables and a pattern of paths; raises UsageError or SourceError for one that cannot be read."""
    rows = [row for table in tables for row in table_rows(str(table))]
    folders = tuple(
        dict.fromkeys(Path(table).expanduser().absolute().parent for table in tables if not is_remote(str(table)))
    )
    return MetadataInput(tuple(rows), None if path_pattern is None else _compiled(path_pattern), folders)


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of `{camera}/{day}/{_}`, for the end of a path without its suffix.

    Raises UsageError.
    """
    parts = re.split(r"\{(\w+)\}", pattern)
    names = [name for name in parts[1::2] if name != "_"]
    if not names:
        raise UsageError(f"got --path-pattern {pattern}; name the parts of a path, such as {{camera}}/{{day}}/{{_}}")
    for name in names:
        if not is_column_name(name) or name in OF_VIDEOS or names.count(name) > 1:
            raise UsageError(f"got --path-pattern {pattern}; {name} can be no column: give small letters, once each")
    pieces = [
        (r"([^/]+?)" if part == "_" else rf"(?P<{part}>[^/]+?)") if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    ]
    return re.compile(rf"(?:^|/){''.join(pieces).lstrip('/')}(?:\.\w+)?$")
