"""`kinodex export hf`: frames as a dataset folder that Hugging Face `datasets` opens: Parquet files and a card.

Needs pyarrow alone, not `datasets`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from kinodex.index.altered_rows import check_values
from kinodex.index.datasets.groups import frames_by_video
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.filters import equal
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Target, target_folder
from kinodex.jobs.open import find_filled_space

# Columns of the exported frames, as Parquet has them and as Hugging Face `datasets` knows them.
#
# Named `Sequence` in the metadata, which versions 2 to 5 of `datasets` read; version 4 renamed it to `List`.

Precision = Literal["float16", "float32", "none"]
"""Numbers of the vectors; "none" leaves them out."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
PLAIN = {
    "video_id": "string",
    "title": "string",
    "frame_no": "int32",
    "time_s": "float64",
    "width_px": "int32",
    "height_px": "int32",
}
"""The columns without pictures and vectors, with their types."""


def checked_precision(name: str) -> Precision:
    """Check the name of a precision; raises UsageError."""
    for known in PRECISIONS:
        if name == known:
            return known
    raise UsageError(f"got vectors {name!r}; give {', '.join(PRECISIONS)}")


def parquet_schema(precision: Precision, dim: int) -> pa.Schema:
    """Make the schema of the files, whose metadata tells `datasets` which column is a picture."""
    fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in PLAIN.items()]
    fields.append(pa.field("image", IMAGE))
    if precision != "none":
        fields.append(pa.field("vector", pa.list_(pa.type_for_alias(precision), dim)))
    known = json.dumps({"info": {"features": _features(precision, dim)}})
    return pa.schema(fields, metadata={"huggingface": known})


def _features(precision: Precision, dim: int) -> dict[str, Any]:
    features: dict[str, Any] = {name: {"dtype": kind, "_type": "Value"} for name, kind in PLAIN.items()}
    features["image"] = {"_type": "Image"}
    if precision != "none":
        number = {"dtype": precision, "_type": "Value"}
        features["vector"] = {"feature": number, "length": dim, "_type": "Sequence"}
    return features


def yaml_features(precision: Precision, dim: int) -> list[dict[str, Any]]:
    """List the same features as the head of a dataset's card has them."""
    features: list[dict[str, Any]] = [{"name": name, "dtype": kind} for name, kind in PLAIN.items()]
    features.append({"name": "image", "dtype": "image"})
    if precision != "none":
        features.append({"name": "vector", "sequence": precision, "length": dim})
    return features


def to_parquet_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Turn rows of the library into rows of the files: the JPEG with a file name as a picture."""
    numbers = zip(table["video_id"].to_pylist(), table["frame_no"].to_pylist(), strict=True)
    paths = pa.array([f"{video_id}-{frame_no}.jpg" for video_id, frame_no in numbers], pa.string())
    picture = pa.StructArray.from_arrays([table["jpeg"].combine_chunks(), paths], fields=list(IMAGE))
    columns = [picture if name == "image" else table[name].cast(schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


# The card of an exported dataset: its head for `datasets`, and a page for people.

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B", "10B<n<100B")
"""Categories of size as the hub names them, each of ten times as many rows as the one before."""


def card_text(
    name: str,
    settings: HfSettings,
    report: HfReport,
    space: Fingerprint,
    sample_fps: float | None,
    unpacked_bytes: int,
) -> str:
    head = _head(name, settings, report, space.dim, unpacked_bytes)
    rate = "" if sample_fps is None else f", {sample_fps:g} a second"
    vector = f"| `vector` | {space.dim} numbers, {settings.vectors} | of unit length, in the space `{space.name}` |\n"
    return f"""---
{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---

# {name}

{report.frames:,} frames of {report.videos:,} videos{rate}; a frame that stays on screen is there once.
Exported by kinodex.

```python
from datasets import load_dataset

frames = load_dataset("path/to/this/folder", split="{settings.split}")
print(frames[0]["title"], frames[0]["time_s"], frames[0]["image"].size)
```

| column | type | contents |
|---|---|---|
| `video_id` | string | first 32 hex digits of the SHA-256 of the video file |
| `title` | string | of the video |
| `frame_no` | int32 | number of the first sample that shows the frame |
| `time_s` | float64 | when a player shows the frame, seconds from 0:00 |
| `width_px`, `height_px` | int32 | of the picture |
| `image` | image | JPEG |
{vector if settings.vectors != "none" else ""}
Rows are in the order of videos by title, and of time within a video. A video is never divided between files.
"""


def _head(name: str, settings: HfSettings, report: HfReport, dim: int, unpacked_bytes: int) -> dict[str, Any]:
    size = SIZES[min(max(len(str(report.frames)) - 3, 0), len(SIZES) - 1)]
    split = settings.split
    return {
        "pretty_name": name,
        "tags": ["video", "kinodex"],
        "size_categories": [size],
        "configs": [{"config_name": "default", "data_files": [{"split": split, "path": f"data/{split}-*"}]}],
        "dataset_info": {
            "features": yaml_features(settings.vectors, dim),
            "splits": [{"name": split, "num_bytes": unpacked_bytes, "num_examples": report.frames}],
            "download_size": report.stored_bytes,
            "dataset_size": unpacked_bytes,
        },
    }


# Write the frames of a library as a folder of Parquet files and a card, in little memory, and on after a kill.

ROWS_PER_GROUP = 100
"""Rows of a row group: what a reader of one row has to read, 2 MB of pictures."""
CARD, DATA = "README.md", "data"


@dataclass(frozen=True, slots=True)
class HfSettings:
    """Settings of an export."""

    vectors: Precision = "float16"
    shard_frames: int = 10_000
    """A file holds whole videos of together at most so many frames, or one longer video."""
    split: str = "train"

    def __post_init__(self) -> None:
        if self.shard_frames < 1:
            raise UsageError(f"got {self.shard_frames} frames a file; give 1 or more")
        if not self.split.replace("_", "").isalnum() or not self.split.isascii():
            raise UsageError(f"got split {self.split!r}; give a name of letters, digits and _, such as train")


class HfReport(NamedTuple):
    """Result of an export."""

    videos: int
    frames: int
    files: int
    stored_bytes: int
    files_before: int
    """Files that an earlier run had written."""


def export_hf(
    library: Library,
    folder: Path,
    settings: HfSettings,
    videos: Sequence[str] = (),
    space: str | None = None,
    on_file: Callable[[int, int], None] = lambda done, total: None,
) -> HfReport:
    """Export the frames of these videos, or of all; `on_file` gets how many files are written, and of how many.

    Raises UsageError for a folder that is not empty, and for videos without frames, DamagedRows for what is not as it
    was written, and LibraryError if a video is removed meanwhile.
    """
    chosen = _chosen(library, videos)
    if not chosen:
        raise UsageError(f"{library.uri} has no frames to export; `kinodex ingest` brings some")
    check_values(library, [video_id for video_id, _ in chosen])
    fingerprint = library.space(space)
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
