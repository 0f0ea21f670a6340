"""Columns of tables: names that SQL has, and texts read as numbers, truth values, days or times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

from kinodex.index.metadata import is_column_name
from kinodex.index.text import composed

KEYS = ("pattern", "uri", "path", "file", "filename", "name", "video", "video_id", "id", "title", "stem")
"""Columns that may name the video of a row: of several that are there, the first."""
NO_COLUMNS = {*KEYS, "sidecars", "_"}
"""Names that no column gets: they say which video is meant, or are a manifest's."""


def typed_rows(rows: Mapping[Any, Mapping[str, Any]], is_text: bool = True) -> dict[Any, dict[str, Any]]:
    """Return the rows with columns under names that SQL has.

    A column whose values are all texts, or all times, is read as such.
    """
    names = list(
        dict.fromkeys(name for row in rows.values() for name in row if name and column_name(name) not in NO_COLUMNS)
    )
    columns = {name: _column([row.get(name) for row in rows.values()], is_text) for name in names}
    return {
        key: {column_name(name): columns[name][number] for name in names if columns[name][number] is not None}
        for number, key in enumerate(rows)
    }


def column_name(name: str) -> str:
    """Return a name as a column's: "Recorded at" is recorded_at."""
    letters = composed(str(name).strip()).lower()
    plain = re.sub(r"\W+", "_", composed(letters)).strip("_")
    return plain if is_column_name(plain) or not plain else f"_{plain}"


def _column(values: Sequence[Any], is_text: bool) -> list[Any]:
    """Return the values of a column: texts that are all numbers, truth values, days or times are read as such."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    plain = [None if isinstance(value, str) and not value.strip() else value for value in values]
    if not texts or len(texts) < sum(value is not None for value in plain):
        return plain
    for read in (_whole, _number, _truth, date.fromisoformat, _time) if is_text else (date.fromisoformat, _time):
        with suppress(ValueError):
            return [None if value is None else read(value.strip()) for value in plain]
    return plain


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?(0|[1-9]\d{0,17})", text):  # 007 is a name
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    if re.match(r"[+-]?0\d", text) or not re.match(r"[+-]?[.\d]", text):
        raise ValueError(text)
    return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
