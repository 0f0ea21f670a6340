"""`kinodex export hf`: frames as a dataset folder that Hugging Face `datasets` opens: Parquet files and a card.

Frames are written in little memory, and on after a kill. Needs pyarrow alone, not `datasets`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kinodex.index.altered_rows import check_values
from kinodex.index.datasets.groups import frames_by_video
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.filters import equal
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.hf_card import card_text
from kinodex.jobs.export.hf_columns import PLAIN, parquet_schema, to_parquet_rows
from kinodex.jobs.export.hf_settings import HfReport, HfSettings
from kinodex.jobs.export.target_folder import Target, target_folder
from kinodex.jobs.open import find_filled_space

ROWS_PER_GROUP = 100
"""Rows of a row group: what a reader of one row has to read, 2 MB of pictures."""
CARD, DATA = "README.md", "data"


def export_hf(
    library: Library,
    folder: Path,
    settings: HfSettings,
    videos: Sequence[str] = (),
    space: str | None = None,
    on_file: Callable[[int, int], None] = lambda done, total: None,
) -> HfReport:
    """Export the frames of these videos, or of all; `on_file` gets how many files are written, and of how many.

    Without a space there are no vectors to export. Raises UsageError for a folder that is not empty, and for videos
    without frames, DamagedRows for what is not as it was written, and LibraryError if a video is removed meanwhile.
    """
    chosen = _chosen(library, videos)
    if not chosen:
        raise UsageError(f"{library.uri} has no frames to export; `kinodex ingest` brings some")
    check_values(library, [video_id for video_id, _ in chosen])
    fingerprint = library.space(space)
    settings = settings if fingerprint.has_vectors else replace(settings, vectors="none")
    if settings.vectors != "none" and fingerprint.digest != library.fingerprint.digest:
        find_filled_space(library, space, library.chosen(videos))
    known = {
        **asdict(settings),
        "library": hashlib.sha256(library.uri.encode()).hexdigest(),
        "space": fingerprint.digest,
        "videos": sorted(videos),
        **({} if library.condition is None else {"where": library.condition}),
    }

    def plan() -> Mapping[str, Any]:
        return {"files": plan_files(chosen, settings.shard_frames), "videos": _states(library)}

    with target_folder(folder, known, plan) as target:
        files = target.plan["files"]
        _check_states(library, target)
        names = [f"{DATA}/{settings.split}-{n:05d}-of-{len(files):05d}.parquet" for n in range(len(files))]
        before = sum(map(target.has, names))
        schema = parquet_schema(settings.vectors, fingerprint.dim)
        for number, (name, ids) in enumerate(zip(names, files, strict=True)):
            if not target.has(name):
                _write_file(library, target, name, ids, schema, settings, fingerprint)
            on_file(number + 1, len(files))
        return _finish(library, target, names, settings, fingerprint)._replace(files_before=before)


def _chosen(library: Library, videos: Sequence[str]) -> list[tuple[str, int]]:
    """List ids and numbers of frames of these videos, or of all, by title; without their other columns."""
    if videos:
        rows = sorted(library.videos_named(videos), key=lambda row: (row.title, row.video_id))
        return [(row.video_id, row.frames) for row in rows if row.frames]
    table = library.video_columns(["video_id", "title", "frames"])
    table = table.sort_by([("title", "ascending"), ("video_id", "ascending")])
    held = zip(table["video_id"].to_pylist(), table["frames"].to_pylist(), strict=True)
    return [(video_id, frames) for video_id, frames in held if frames]


def _states(library: Library) -> dict[str, str]:
    """Say of each complete video, by id, how it was ingested: what its rows depend on."""
    columns = ["video_id", "title", "frames", "sample_fps", "ingested_at"]
    table = library.tables.rows("videos", equal("state", "complete"), columns)
    return {row.pop("video_id"): json.dumps(row, default=str) for row in table.to_pylist()}


def _check_states(library: Library, target: Target) -> None:
    """Raise UsageError if a video of an unfinished export was ingested again since; those that are gone come later."""
    known, now = target.plan.get("videos", {}), _states(library)
    for video_id in (each for file in target.plan["files"] for each in file):
        if video_id in known and now.get(video_id, known[video_id]) != known[video_id]:
            raise UsageError(
                f"got {target.folder}, an unfinished export of video {video_id} as it was before: {known[video_id]}, "
                f"now {now[video_id]}; delete the folder"
            )


def plan_files(videos: Sequence[tuple[str, int]], most_frames: int) -> list[list[str]]:
    """Divide videos, ids with their numbers of frames, in their order into the ids of each file."""
    files: list[list[str]] = []
    held = 0
    for video_id, frames in videos:
        if not files or held + frames > most_frames:
            files.append([])
            held = 0
        files[-1].append(video_id)
        held += frames
    return files


def _write_file(
    library: Library,
    target: Target,
    name: str,
    ids: Sequence[str],
    schema: pa.Schema,
    settings: HfSettings,
    fingerprint: Fingerprint,
) -> None:
    columns = [*PLAIN, "jpeg", *(["vector"] if settings.vectors != "none" else [])]
    tables = frames_by_video(library, columns, ids, fingerprint.digest)
    # JPEGs and vectors do not get smaller.
    packed = dict.fromkeys([*PLAIN, "image.path"], "zstd") | {"image.bytes": "none", "vector.list.element": "none"}

    def fill(path: Path) -> None:
        with pq.ParquetWriter(path, schema, compression=packed) as writer:
            for group in _groups(tables):
                writer.write_table(to_parquet_rows(group, schema))

    target.write(name, fill)


def _groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Cut tables into row groups, which may go across them."""
    rest: pa.Table | None = None
    for table in tables:
        rest = table if rest is None else pa.concat_tables([rest, table])
        while rest.num_rows >= ROWS_PER_GROUP:
            yield rest.slice(0, ROWS_PER_GROUP)
            rest = rest.slice(ROWS_PER_GROUP)
    if rest is not None and rest.num_rows:
        yield rest


def _finish(
    library: Library, target: Target, names: Sequence[str], settings: HfSettings, fingerprint: Fingerprint
) -> HfReport:
    """Write the card, the last thing, and move all to its place."""
    place = target.work if (target.work / DATA).exists() else target.folder
    paths = [place / name for name in names]
    facts = [pq.read_metadata(path) for path in paths]
    report = HfReport(
        videos=sum(map(len, target.plan["files"])),
        frames=sum(each.num_rows for each in facts),
        files=len(names),
        stored_bytes=sum(path.stat().st_size for path in paths),
        files_before=0,
    )
    unpacked = sum(each.row_group(n).total_byte_size for each in facts for n in range(each.num_row_groups))
    fps = library.settings.get("fps")
    name, sample_fps = target.folder.absolute().name, None if fps is None else float(fps)
    target.write_bytes(CARD, card_text(name, settings, report, fingerprint, sample_fps, unpacked))
    target.finish(DATA, CARD)
    return report
