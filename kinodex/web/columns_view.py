"""Columns as the page draws them: those of videos, and the values of extracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kinodex.index.conditions import quoted
from kinodex.index.library import Library
from kinodex.index.metadata import Facet
from kinodex.index.metadata import plain as plain_value
from kinodex.notebook import evidence_s


def extract_row(library: Library, columns: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an extract for the page.

    It has the values as texts, and the frame on screen when the evidence begins.
    """
    video = library.video(row["video_id"])
    start_s, end_s = evidence_s(row)
    frame_no = None
    if video.frames:
        numbers, times_s = library.frame_times(video.video_id)
        frame_no = int(numbers[max(0, int(np.searchsorted(times_s, start_s, "right")) - 1)])
    values = [None if row[each] is None else plain_value(row[each]) for each in columns]
    shown = {"title": video.title, "start_s": start_s, "end_s": end_s, "frame_no": frame_no, "values": values}
    return {"video_id": video.video_id, **shown}


def facet_view(facet: Facet) -> dict[str, Any]:
    """Return a column for the page: `sql` is its name in a condition, values and ends are texts as they stand there."""
    values = [{"text": plain_value(value), "videos": count} for value, count in facet.values]
    ends = {"least": facet.least, "most": facet.most}
    return {
        "name": facet.name,
        "sql": quoted(facet.name),
        "kind": _kind(facet.type),
        "values": values,
        **{name: None if value is None else plain_value(value) for name, value in ends.items()},
        "missing": facet.missing,
    }


def _kind(type_name: str) -> str:
    """Of values in a condition: texts and times stand in quotes, numbers and truth values do not."""
    if type_name.startswith("list"):
        return "list"
    if type_name.startswith(("timestamp", "date")):
        return "time"
    return "text" if type_name == "string" else "number"
