"""Failures of a library as the page draws them, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from index.library import Library

ROWS = 100
"""Rows of a table that the page shows at a time."""


def failures_page(library: Library, words: str, start: int) -> dict[str, Any]:
    """Page of sources that failed, by words of their URIs or reasons."""
    return _page([row for row in library.ingest_log.failures() if _contains(words, row.uri, row.message)], start)


def _contains(words: str, *texts: str) -> bool:
    return any(words.casefold() in text.casefold() for text in texts)


def _page(rows: Sequence[Any], start: int) -> dict[str, Any]:
    return {"count": len(rows), "rows": rows[start : start + ROWS]}
