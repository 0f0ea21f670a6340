"""Rows of a stage's table as readers see them: those of the newest model that completed the stage of a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from index.store.database import Tables
from index.store.filters import Filter, all_of, equal
from index.store.late_tables import present
from index.videos.visibility import VisibilityCache


def newest_rows(
    tables: Tables,
    visible: VisibilityCache,
    table: str,
    stage: str,
    name: str,
    filters: Sequence[Filter],
    columns: Sequence[str],
) -> list[dict[str, Any]]:
    """Read the rows of one video, by id or name, that match all filters; none where no model completed the stage.

    Raises UnknownVideo.
    """
    video_id = visible.video(name).video_id
    models = visible.models(stage, [video_id]).get(video_id, ())
    if not models or not present(tables, [table]):
        return []
    of_model = [equal("video_id", video_id), equal("model", models[-1])]
    rows: list[dict[str, Any]] = tables.rows(table, all_of([*of_model, *filters]), columns).to_pylist()
    return rows
