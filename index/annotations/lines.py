"""The lines of text that readers see of a video, of all `LINE_KINDS`: said, on screen, captions.

Of each kind those of the newest model are seen, and subtitles always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kinodex.index.additions import append_rows
from kinodex.index.annotations.speakers import Speakers, shown_speaker
from kinodex.index.clocks import moved_s, stored_range
from kinodex.index.kinds import LINE_KINDS, KindName
from kinodex.index.rows import TextLine, known
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, equal, overlapping
from kinodex.index.store.held_tables import present
from kinodex.index.videos.visibility import VisibilityCache

LINE_COLUMNS = frozenset({*TextLine.__slots__, "box"} - {"source"})
LineKey = tuple[str, KindName, str | None]
"""Video, kind and model of lines."""


class Lines:
    """Lines of text of all kinds."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(
        self,
        video: str,
        kinds: Sequence[KindName] = LINE_KINDS,
        start_s: float | None = None,
        end_s: float | None = None,
    ) -> list[TextLine]:
        """Read the lines of some kinds that share some time with `[start_s, end_s)`: kind by kind, in order of time.

        Raises UnknownVideo.
        """
        row = self._visible.video(video)
        limits = overlapping(*stored_range(row.zero_s, start_s, end_s))
        lines = stored_lines(self._tables, self._visible, row.video_id, kinds, limits)
        names = Speakers(self._tables).names_of(line.speaker for line in lines)
        return [
            replace(
                line,
                start_s=moved_s(line.start_s, -row.zero_s),
                end_s=moved_s(line.end_s, -row.zero_s),
                speaker=shown_speaker(line.speaker, names),
            )
            for line in lines
        ]

    def add(self, kind: KindName, videos: Mapping[str, Sequence[Any]], model: str) -> None:
        """Append lines of a kind by video id: objects with its columns as attributes, or some of them.

        `Additions.complete` makes them visible. Speech and captions have a method of their own in `Additions`.
        """
        append_rows(self._tables, self._visible, kind, videos, model=lambda _: model)


def stored_lines(
    tables: Tables,
    visible: VisibilityCache,
    video_id: str,
    kinds: Sequence[KindName] = LINE_KINDS,
    limits: Sequence[Filter] = (),
) -> list[TextLine]:
    """Read the lines that readers see of a complete video in presentation times: kind by kind, in order of time."""
    lines = []
    for kind in kinds:
        models = shown_models(visible, kind, [video_id])[video_id]
        for name in present(tables, [kind]):
            columns = [each for each in tables.schema(name).names if each in LINE_COLUMNS]
            rows = tables.rows(name, all_of([equal("video_id", video_id), *limits]), columns).to_pylist()
            seen = sorted((row for row in rows if row["model"] in models), key=_reading_order)
            lines += [known(TextLine, {**row, "source": kind}) for row in seen]
    return lines


def _reading_order(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Order lines by time; those that appear together on a screen from top to bottom."""
    box = row.get("box")
    return (row["start_s"], box[1], box[0]) if box else (row["start_s"], row["end_s"])


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


def shown_models(visible: VisibilityCache, source: KindName, ids: Collection[str]) -> dict[str, tuple[str | None, ...]]:
    """List the models whose lines of one kind readers see of these complete videos; None stands for subtitles."""
    newest = visible.models(source, ids)
    return {id_: (None, *newest.get(id_, ())[-1:]) for id_ in ids}


def grouped(batch: pa.RecordBatch, columns: list[str]) -> list[dict[str, Any]]:
    """Count the rows of a batch by some of its columns: `count_all`."""
    rows: list[dict[str, Any]] = (
        pa.Table.from_batches([batch]).group_by(columns).aggregate([([], "count_all")]).to_pylist()
    )
    return rows
