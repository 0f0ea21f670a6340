"""Moments as a table: CSV with a heading, or JSON lines. `kinodex export --ranges` reads both again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.spreadsheet_cells import plain_cell
from kinodex.redaction import redact_uri

COLUMNS = (
    *("video_id", "title", "uri", "start_s", "end_s", "presentation_start_s", "presentation_end_s"),
    *("label", "score", "source", "speaker"),
)


def csv_text(moments: Iterable[Moment]) -> str:
    """Write a row a moment, with a heading (RFC 4180, in UTF-8)."""
    return table_text(COLUMNS, rows(moments))


def jsonl_text(moments: Iterable[Moment]) -> str:
    """Write an object a moment, a line each, with the keys of `COLUMNS`."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(moments))


def table_text(columns: Sequence[str], values: Iterable[dict[str, Any]]) -> str:
    """Write rows of these columns as CSV; None is an empty field, and no text is a spreadsheet's formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: plain_cell(value) for name, value in row.items()} for row in values)
    return text.getvalue()


def rows(moments: Iterable[Moment]) -> Iterator[dict[str, Any]]:
    """Yield a moment's values by the names of `COLUMNS`; times in seconds to the microsecond."""
    for each in moments:
        video, times = each.video, (each.start_s, each.end_s, each.presentation_start_s, each.presentation_end_s)
        seconds = (round(time_s, 6) for time_s in times)
        said = each.label, each.score, each.source, each.speaker
        yield dict(zip(COLUMNS, (video.video_id, video.title, redact_uri(video.uri), *seconds, *said), strict=True))
