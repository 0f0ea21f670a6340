"""Rows of a stage's table as readers see them: those of the newest model that completed the stage of a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kinodex.index.clocks import moved, stored_range
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, equal, overlapping
from kinodex.index.store.held_tables import present
from kinodex.index.videos.visibility import VisibilityCache


def newest_rows(
    tables: Tables,
    visible: VisibilityCache,
    stage: str,
    name: str,
    columns: Sequence[str],
    filters: Sequence[Filter] = (),
    *,
    start_s: float | None = None,
    end_s: float | None = None,
) -> list[dict[str, Any]]:
    """Read rows of one video, by id or name, of the newest model that completed the stage; raises UnknownVideo."""
    video = visible.video(name)
    video_id = video.video_id
    models = visible.models(stage, [video_id]).get(video_id, ())
    if not models or not present(tables, [stage]):
        return []
    of_model = [equal("video_id", video_id), equal("model", models[-1])]
    limits = overlapping(*stored_range(video.zero_s, start_s, end_s))
    rows = tables.rows(stage, all_of([*of_model, *filters, *limits]), columns).to_pylist()
    return [moved(row, -video.zero_s) for row in rows]
