"""Near-duplicates on a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.markup import escape

from index.redact import redact
from jobs.console.escape import visible
from jobs.console.output import clock, console, duration, plain_table, print_json
from jobs.export.moments.range_file import plain_cell

if TYPE_CHECKING:
    from index.rows import VideoRow
    from jobs.duplicates.find import Duplicate, DuplicateRange

CSV_COLUMNS = (
    *("video_id_a", "title_a", "video_id_b", "title_b", "offset_s", "speed"),
    *("start_a_s", "end_a_s", "start_b_s", "end_b_s"),
    *("shared_s", "share_a", "share_b", "score", "likeness"),
)


def show_duplicates(found: Sequence[Duplicate], as_json: bool, as_csv: bool) -> None:
    """Print pairs of videos that show the same: a table, a JSON document, or a row of CSV for each range."""
    if as_json:
        print_json([_document(each) for each in found])
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        writer.writerows(map(plain_cell, row) for each in found for row in _csv_rows(each))
        return
    columns = ("video", "shows the same as", "offset", "speed", "in the first", "in the second", "length", "of each")
    table = plain_table(*columns, "score")
    for each in found:
        for number, part in enumerate(each.ranges):
            names, figures = (_names_of(each), _figures(each)) if number == 0 else (("", ""), ("", "", ""))
            before = each.ranges[number - 1] if number else None
            goes_on = before is not None and (before.offset_s, before.speed) == (part.offset_s, part.speed)
            table.add_row(*names, *(("", "") if goes_on else _place(part)), *_ends(part), *figures)
    console().print(table if found else "no two videos show the same")


def _names_of(each: Duplicate) -> tuple[str, str]:
    return escape(visible(each.a.title)), escape(visible(each.b.title))


def _place(part: DuplicateRange) -> tuple[str, str]:
    offset = f"{'+' if part.offset_s >= 0 else '-'}{clock(abs(part.offset_s))}"
    return offset, "1" if part.speed == 1 else f"{part.speed:.4g}"


def _figures(each: Duplicate) -> tuple[str, ...]:
    return duration(each.shared_s), f"{each.share_a:.0%} / {each.share_b:.0%}", f"{each.score:.2f}"


def _ends(part: DuplicateRange) -> tuple[str, str]:
    first = f"{clock(max(part.start_a_s, 0.0))} to {clock(part.end_a_s)}"
    return first, f"{clock(max(part.start_b_s, 0.0))} to {clock(part.end_b_s)}"


def _document(each: Duplicate) -> dict[str, object]:
    fields = {name: value for name, value in asdict(each).items() if name not in ("a", "b")}
    return {"a": _names(each.a), "b": _names(each.b), **fields}


def _names(row: VideoRow) -> dict[str, object]:
    return {"video_id": row.video_id, "title": row.title, "uri": row.uri, "duration_s": row.duration_s}


def _csv_rows(each: Duplicate) -> list[tuple[object, ...]]:
    videos = (each.a.video_id, redact(each.a.title), each.b.video_id, redact(each.b.title))
    figures = (each.shared_s, each.share_a, each.share_b, each.score, each.likeness)
    return [
        (
            *videos,
            *(round(value, 4) for value in (part.offset_s, part.speed)),
            *(round(value, 3) for value in (part.start_a_s, part.end_a_s, part.start_b_s, part.end_b_s)),
            *(round(value, 4) for value in figures),
        )
        for part in each.ranges
    ]
