"""The lines of text that readers see of a video, of all `LINE_KINDS`: said, on screen, and captions.

Of captions, speech and text on screen those of the newest model are seen, and subtitles always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from kinodex.index.kinds import LINE_KINDS, LineKind
from kinodex.index.rows import TextLine
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.held_tables import present
from kinodex.index.videos.visibility import VisibilityCache

LINE_COLUMNS = ["video_id", "start_s", "end_s", "text", "model"]
LineKey = tuple[str, LineKind, str | None]
"""Video, kind and model of lines."""


def lines_of(tables: Tables, visible: VisibilityCache, video_id: str) -> list[TextLine]:
    """Read the lines that readers see of a complete video, kind by kind, each in order of time."""
    lines = []
    for source in LINE_KINDS:
        models = shown_models(visible, source, [video_id])[video_id]
        for name in present(tables, [source]):
            rows = tables.rows(name, equal("video_id", video_id), LINE_COLUMNS).sort_by("start_s").to_pylist()
            lines += [TextLine(source=source, **row) for row in rows if row["model"] in models]
    return lines


def count_lines(tables: Tables, visible: VisibilityCache) -> Counter[LineKey]:
    """Count the lines that readers see of all complete videos, by video, kind and model."""
    videos = visible.videos()
    counts: Counter[LineKey] = Counter()
    for source in LINE_KINDS:
        models = shown_models(visible, source, videos)
        for name in present(tables, [source]):
            for batch in tables.batches(name, None, ["video_id", "model"]):
                for row in grouped(batch, ["video_id", "model"]):
                    if row["model"] in models.get(row["video_id"], ()):
                        counts[row["video_id"], source, row["model"]] += row["count_all"]
    return counts


def shown_models(visible: VisibilityCache, source: LineKind, ids: Collection[str]) -> dict[str, tuple[str | None, ...]]:
    """List the models whose lines of one kind readers see of these complete videos; None stands for subtitles."""
    newest = visible.models(source, ids)
    return {id_: (None, *newest.get(id_, ())[-1:]) for id_ in ids}


def grouped(batch: pa.RecordBatch, columns: list[str]) -> list[dict[str, Any]]:
    """Count the rows of a batch by some of its columns: `count_all`."""
    rows: list[dict[str, Any]] = (
        pa.Table.from_batches([batch]).group_by(columns).aggregate([([], "count_all")]).to_pylist()
    )
    return rows
