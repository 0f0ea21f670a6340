"""Optional stages: what was added to which video by which model, so that it may stop anywhere and go on later.

A stage's rows come first and the video's row in `additions` last, as with `videos`: readers look only at rows of
additions that are complete, so nobody sees half of one. What an interrupted run left is deleted before it is
done again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lancedb.expr import Expr

from index.annotations import clip_captions as clips
from index.errors import LibraryError
from index.rows import AddedFacts
from index.store.connection import is_local
from index.store.filters import all_of, chunked, equal, one_of
from index.store.tables import Tables
from index.store.vector_tables import space_tables

STAGE_TABLES = {"captions": "captions", "detections": "detections", "speech": "transcript"}
"""Vectors have a table for each space instead."""
STAGES = (*STAGE_TABLES, "vectors")

Models = dict[str, tuple[str, ...]]
"""Video ids to the models of one stage that are complete there, the newest last."""


def complete_models(tables: Tables, stage: str, ids: Sequence[str] | None = None) -> Models:
    """The models that have a complete addition of this stage, for each of these videos, or all, that has one."""
    chosen = [] if ids is None else [one_of("video_id", ids)]
    where = all_of([*chosen, equal("stage", _checked(stage))])
    rows = tables.rows("additions", where, ["video_id", "model", "added_at"])
    models: Models = {}
    for row in rows.sort_by([("added_at", "ascending"), ("model", "ascending")]).to_pylist():
        models[row["video_id"]] = (*models.get(row["video_id"], ()), row["model"])
    return models


def newest_counts(tables: Tables, stage: str, model: str | None = None) -> dict[str, int]:
    """How many rows the newest complete addition of this stage, or a model's, has, for each video that has one."""
    of_model = [] if model is None else [equal("model", model)]
    where = all_of([equal("stage", _checked(stage)), *of_model])
    rows = tables.rows("additions", where, ["video_id", "model", "rows", "added_at"])
    in_order = rows.sort_by([("added_at", "ascending"), ("model", "ascending")])
    return {row["video_id"]: row["rows"] for row in in_order.to_pylist()}


def newest_settings(tables: Tables, stage: str, model: str) -> dict[str, Any]:
    """What the newest complete addition of a model was made with; empty where there is none."""
    of_model = equal("stage", _checked(stage)) & equal("model", model)
    rows = tables.rows("additions", of_model, ["settings", "added_at"]).group_by("settings")
    newest = rows.aggregate([("added_at", "max")]).sort_by([("added_at_max", "descending")])["settings"]
    settings: dict[str, Any] = json.loads(newest[0].as_py()) if len(newest) else {}
    return settings


def added_facts(tables: Tables) -> tuple[AddedFacts, ...]:
    """What optional stages added, by stage and model."""
    rows = tables.rows("additions", None, ["stage", "model", "rows"]).group_by(["stage", "model"])
    totals = rows.aggregate([("rows", "count"), ("rows", "sum")]).sort_by(
        [("stage", "ascending"), ("model", "ascending")]
    )
    return tuple(
        AddedFacts(each["stage"], each["model"], each["rows_count"], each["rows_sum"]) for each in totals.to_pylist()
    )


def complete(
    tables: Tables,
    videos: Container[str],
    stage: str,
    model: str,
    counts: Mapping[str, int],
    settings: Mapping[str, Any],
) -> tuple[str, ...]:
    """See Library.complete_addition."""
    held = rows_held(tables, stage, model, counts)
    wrong = [id_ for id_, count in counts.items() if id_ not in videos or held[id_] != count]
    discard(tables, stage, model, wrong)
    if is_local(tables.uri):
        os.sync()  # as in Library.complete: a row must not outlive what it vouches for
    common = {"stage": stage, "model": model, "settings": json.dumps(settings, sort_keys=True)}
    now = datetime.now(UTC)
    rows = [
        {"video_id": video_id, "rows": count, "added_at": now, **common}
        for video_id, count in counts.items()
        if video_id not in wrong
    ]
    if rows:
        tables.upsert("additions", ["video_id", "stage", "model"], rows)
    return tuple(wrong)


def rows_held(tables: Tables, stage: str, model: str, video_ids: Iterable[str]) -> Counter[str]:
    """How many rows of a stage and model each video has, complete or not."""
    table, of_model = stage_rows(tables, stage, model)
    held: Counter[str] = Counter()
    for ids in chunked(sorted(video_ids)):
        rows = tables.rows(table, all_of([one_of("video_id", ids), *of_model]), ["video_id"])
        held.update(rows["video_id"].to_pylist())
    return held


def discard(tables: Tables, stage: str, model: str, video_ids: Iterable[str]) -> None:
    """Delete an addition and its rows, complete or left over."""
    table, of_model = stage_rows(tables, stage, model)
    for ids in chunked(sorted(video_ids)):
        videos = one_of("video_id", ids)
        tables.delete("additions", videos & equal("stage", stage) & equal("model", model))
        tables.delete(table, videos if not of_model else videos & of_model[0])


def discard_leftovers(tables: Tables, stage: str, model: str) -> int:
    """Delete the rows of additions that were never completed; returns of how many videos."""
    table, of_model = stage_rows(tables, stage, model)
    found = tables.rows(table, all_of(of_model), ["video_id"])["video_id"].unique().to_pylist()
    done = complete_models(tables, stage)
    leftovers = [video_id for video_id in found if model not in done.get(video_id, ())]
    discard(tables, stage, model, leftovers)
    return len(leftovers)


def forget_video(tables: Tables, of_video: Expr) -> None:
    """Delete all additions and clips of videos that are taken out of the library."""
    clips.forget(tables, of_video)
    for name in ("additions", *STAGE_TABLES.values(), *space_tables(tables)):
        tables.delete(name, of_video)


def stage_rows(tables: Tables, stage: str, model: str) -> tuple[str, list[Expr]]:
    """The table that holds a stage's rows, and the filter for those of one model."""
    if _checked(stage) != "vectors":
        return STAGE_TABLES[stage], [equal("model", model)]
    spaces = {fingerprint.digest: table for table, fingerprint in space_tables(tables).items()}
    if model not in spaces:
        raise LibraryError(f"got space {model}, which {tables.uri} does not hold ({', '.join(spaces)}); add it first")
    return spaces[model], []


def _checked(stage: str) -> str:
    if stage not in STAGES:
        raise LibraryError(f"got stage {stage!r}; it is one of {', '.join(STAGES)}")
    return stage
