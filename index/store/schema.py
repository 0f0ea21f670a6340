"""Filters of the library, built from typed values: these are turned into SQL in one place, and quoted there."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import reduce
from numbers import Integral
from operator import and_
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.errors import LibraryDamaged, NewerLibrary, NotALibrary, OlderLibrary, checked_text
from kinodex.index.rows import Scope
from kinodex.index.spaces.towers import Fingerprint

MAX_VALUES_PER_FILTER = 500

Value = str | int | float | datetime
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the columns of a table, as SQL of DataFusion; `&` and `|` combine two."""

    sql: str

    def __and__(self, other: Filter) -> Filter:
        return Filter(f"({self.sql}) AND ({other.sql})")

    def __or__(self, other: Filter) -> Filter:
        return Filter(f"({self.sql}) OR ({other.sql})")


def sql_value(value: Value) -> str:
    """Write a value as SQL; a time of day becomes a text, which takes the type of the column that it is set in.

    Raises QueryError for a text that is not UTF-8: an argument with such bytes arrives with lone surrogates.
    """
    if isinstance(value, str):
        return "'" + checked_text(value, "no video and no label has such a name").replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"'{value.isoformat()}'"
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)  # NumPy's numbers write their type with their value
    return repr(number) if math.isfinite(number) else f"CAST('{number}' AS DOUBLE)"


def equal(column: str, value: str | int) -> Filter:
    """Match rows with this value."""
    return Filter(f"{column} = {sql_value(value)}")


def other_than(column: str, value: str | int) -> Filter:
    """Match rows with another value than this; none is no other."""
    return Filter(f"{column} != {sql_value(value)}")


def none_of(column: str, values: Sequence[str]) -> Filter:
    """Match rows with none of these values, of which there is one at least."""
    return Filter(f"{column} NOT IN ({', '.join(map(sql_value, values))})")


def at_least(column: str, value: float) -> Filter:
    """Match rows with this value or more."""
    return Filter(f"{column} >= {sql_value(value)}")


def above(column: str, value: float) -> Filter:
    """Match rows with more than this value."""
    return Filter(f"{column} > {sql_value(value)}")


def below(column: str, value: float) -> Filter:
    """Match rows with less than this value."""
    return Filter(f"{column} < {sql_value(value)}")


def one_of(column: str, values: Sequence[str] | Sequence[float]) -> Filter:
    """Match rows with one of these values; none where there are no values."""
    return Filter(f"{column} IN ({', '.join(map(sql_value, values))})" if values else "false")


def of_frames(video_id: str, frame_nos: Sequence[int]) -> Filter:
    """Match these frames of one video; the key is indexed, but only almost unique."""
    return one_of("frame_key", [frame_key(video_id, number) for number in frame_nos]) & equal("video_id", video_id)


def overlapping(start_s: float | None, end_s: float | None) -> list[Filter]:
    """Match ranges that share some time with `[start_s, end_s)`."""
    after = [] if start_s is None else [above("end_s", start_s)]
    return after + ([] if end_s is None else [below("start_s", end_s)])


def within(start_s: float | None, end_s: float | None) -> list[Filter]:
    """Match frames at a time in `[start_s, end_s)`."""
    after = [] if start_s is None else [at_least("time_s", start_s)]
    return after + ([] if end_s is None else [below("time_s", end_s)])


def of_videos(scope: Scope) -> list[Filter]:
    """Match rows of the videos of a scope."""
    return [] if scope.video_ids is None else [one_of("video_id", scope.video_ids)]


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """Combine filters; None, which matches everything, if there are none."""
    return reduce(and_, filters) if filters else None


def any_of(filters: Sequence[Filter]) -> Filter:
    """Match what one of these filters does; in halves, so that thousands do not stand in each other's brackets."""
    middle = len(filters) // 2
    return any_of(filters[:middle]) | any_of(filters[middle:]) if middle else filters[0]


def chunked(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split values into groups that one filter can hold."""
    for first in range(0, len(values), MAX_VALUES_PER_FILTER):
        yield values[first : first + MAX_VALUES_PER_FILTER]


def fits_one_filter(values: Sequence[str]) -> Sequence[str] | None:
    """Return the values if one filter can hold them; None, which matches everything, if there are more."""
    return values if len(values) <= MAX_VALUES_PER_FILTER else None


# Tables of a library: their columns and metadata.
#
# Further tables are there once something needs them (see `index.store.late_tables`).
#
# Pixels and vectors live in different tables, because searching must not read pictures and compaction must not
# copy them. Library-wide facts are schema metadata of `videos`, which is created last: where it is, all is.

FORMAT_VERSION = 2
FORMAT_KEY, SETTINGS_KEY, SPACE_KEY = b"kinodex.format", b"kinodex.settings", b"kinodex.space"
VECTORS_PREFIX = "vectors_"
SENTENCES_PREFIX = "sentences_"
KEY_BITS = 24
"""Bits of a stored key that hold a frame's number; larger numbers than they hold change the upper bits, too."""
FRAME_NO_BITS = 32
"""More than enough for any number of a frame, which is an int32: for keys that are not stored."""
LAST_FRAME_NO = 2**31 - 1
CHECKSUM = "jpeg_crc32"
"""Column of `frames` with the CRC-32 of the picture: Lance keeps no checksum of its files."""
VIDEO_DIGESTS = "digests"
"""Column of `videos` with the digests of a video's rows (see `kinodex.index.digests`)."""
ADDED_DIGEST = "digest"
"""Column of `additions` with the digest of the rows that were added."""
LATE_COLUMNS = (CHECKSUM, VIDEO_DIGESTS, ADDED_DIGEST, "words")
"""Columns that libraries lack which were made before there was one."""
STAGE_TABLES = {
    "captions": "captions",
    "detections": "detections",
    "speech": "transcript",
    "text": "screen_text",
    "summaries": "scenes",
}
"""Tables of the optional stages. Vectors, and those of sentences, have a table for each space instead."""
STAGES = (*STAGE_TABLES, "vectors", "sentences")


@dataclass(frozen=True, slots=True)
class Heading:
    """Facts about a whole library, from the metadata of its `videos` table."""

    format_version: int
    settings: Mapping[str, Any]
    fingerprint: Fingerprint


def frame_key(video_id: str, frame_no: int) -> int:
    """Make an integer of (video, frame): 39 bits of the id's sha256 plus the number above its 24 bits, then these.

    One indexed `IN` over such keys fetches frames of many videos 12 times quicker than an OR of pairs. Two
    videos may share a key's upper bits, so a reader checks `video_id` too; frames of one video never share a key.
    """
    return int(frame_keys(video_id, [frame_no])[0])


def frame_keys(video_id: str, frame_nos: Sequence[int]) -> NDArray[np.int64]:
    """Make the keys of frames of one video; raises ValueError for a number that does not fit."""
    numbers = np.asarray(frame_nos, np.int64)
    wrong = numbers[(numbers < 0) | (numbers > LAST_FRAME_NO)]
    if len(wrong):
        raise ValueError(f"frame_no {wrong[0]} is not in [0, {LAST_FRAME_NO}]")
    of_video = int.from_bytes(hashlib.sha256(video_id.encode()).digest()[:5]) >> 1
    upper = (of_video + (numbers >> KEY_BITS)) & ((1 << 39) - 1)
    keys: NDArray[np.int64] = upper << KEY_BITS | numbers & ((1 << KEY_BITS) - 1)
    return keys


def vectors_table(fingerprint: Fingerprint, prefix: str = VECTORS_PREFIX) -> str:
    """Name the table that holds a space's vectors, of frames, or of sentences by their prefix."""
    words = re.sub(r"[^a-z0-9]+", "_", fingerprint.name.lower()).strip("_")[-40:]
    return f"{prefix}{words}_{fingerprint.digest}"


def table_schemas(settings: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, pa.Schema]:
    """Make the schema of every table, by name, `videos` last."""
    return {
        "frames": FRAMES,
        vectors_table(fingerprint): vectors_schema(fingerprint),
        "segments": SEGMENTS,
        "captions": _captions(fingerprint.dim),
        "detections": DETECTIONS,
        "transcript": TRANSCRIPT,
        "additions": ADDITIONS,
        "failures": FAILURES,
        "sources": SOURCES,
        "runs": RUNS,
        "leases": LEASES,
        "videos": VIDEOS.with_metadata(
            {
                FORMAT_KEY: str(FORMAT_VERSION),
                SETTINGS_KEY: json.dumps(settings, sort_keys=True),
                SPACE_KEY: json.dumps(asdict(fingerprint), sort_keys=True),
            }
        ),
    }


def read_heading(schema: pa.Schema, uri: str) -> Heading:
    """Read the metadata of `videos`; raises NotALibrary, NewerLibrary, OlderLibrary or LibraryDamaged."""
    metadata = schema.metadata or {}
    if FORMAT_KEY not in metadata:
        raise NotALibrary(f"got {uri}, Lance tables that kinodex did not make; give a library")
    if not metadata[FORMAT_KEY].isdigit():
        raise _altered(f"the format of {uri}", repr(metadata[FORMAT_KEY]))
    version = int(metadata[FORMAT_KEY])
    if version > FORMAT_VERSION:
        raise NewerLibrary(f"{uri} has format {version}, and this kinodex reads {FORMAT_VERSION}; update kinodex")
    if version < FORMAT_VERSION:
        raise OlderLibrary(
            f"{uri} has format {version}, and this kinodex reads {FORMAT_VERSION}; ingest its videos into a new library"
        )
    check_columns(schema, VIDEOS, "videos", uri)
    try:
        settings: dict[str, Any] = json.loads(metadata[SETTINGS_KEY])
    except (KeyError, ValueError) as error:
        raise _altered(f"the settings of {uri}", str(error)) from error
    return Heading(version, settings, read_space(schema, uri))


def check_columns(found: pa.Schema, wanted: pa.Schema, name: str, uri: str) -> None:
    """Raise LibraryDamaged if a table lacks a column that it has in every library."""
    lacks = sorted(set(wanted.names).difference(found.names, LATE_COLUMNS))
    if lacks:
        raise _altered(f"the table {name} of {uri}", f"it has no column {lacks[0]}")


def read_space(schema: pa.Schema, name: str) -> Fingerprint:
    """Read the space from the metadata of `videos` or of a table of vectors; raises LibraryDamaged, naming it."""
    try:
        return Fingerprint(**json.loads(schema.metadata[SPACE_KEY]))
    except (KeyError, TypeError, ValueError) as error:
        raise _altered(f"the space of {name}", str(error)) from error


def _altered(what: str, why: str) -> LibraryDamaged:
    return LibraryDamaged(f"cannot read {what}: it is not what was written ({why[:200]}); restore it from a copy")


def vectors_schema(fingerprint: Fingerprint) -> pa.Schema:
    """Make the schema of a space's vectors; its metadata holds the whole fingerprint."""
    return pa.schema(
        [
            required("video_id", pa.string()),
            required("frame_no", pa.int32()),
            required("time_s", pa.float64()),
            required("vector", pa.list_(pa.float16(), fingerprint.dim)),
        ],
        metadata={SPACE_KEY: json.dumps(asdict(fingerprint), sort_keys=True)},
    )


def _captions(dim: int) -> pa.Schema:
    """Make the schema of captions, which are searched by word and, in the library's own space, by meaning."""
    return pa.schema(
        [
            required("video_id", pa.string()),
            required("segment_no", pa.int32()),
            required("start_s", pa.float64()),
            required("end_s", pa.float64()),
            required("text", pa.string()),
            pa.field("confidence", pa.float32()),
            required("model", pa.string()),
            pa.field("vector", pa.list_(pa.float16(), dim)),
        ]
    )


def required(name: str, kind: pa.DataType) -> pa.Field:
    """Make a column without nulls."""
    return pa.field(name, kind, nullable=False)


def key(name: str, position: int) -> pa.Field:
    """Make a column of the primary key, without which concurrent upserts of one row leave it there twice."""
    marks = {
        "lance-schema:unenforced-primary-key": "true",
        "lance-schema:unenforced-primary-key:position": str(position),
    }
    return pa.field(name, pa.string(), nullable=False, metadata=marks)


VIDEOS = pa.schema(
    [
        key("video_id", 1),
        required("uri", pa.string()),
        required("title", pa.string()),
        required("start_s", pa.float64()),
        required("duration_s", pa.float64()),
        pa.field("fps", pa.float64()),
        required("width_px", pa.int32()),
        required("height_px", pa.int32()),
        required("codec", pa.string()),
        required("frames", pa.int32()),
        required("segments", pa.int32()),
        required("transcript_lines", pa.int32()),
        required("decode_errors", pa.int32()),
        required("sample_fps", pa.float64()),
        required("space", pa.string()),
        required("state", pa.string()),
        required("ingested_at", pa.timestamp("us", tz="UTC")),
        pa.field(VIDEO_DIGESTS, pa.string()),  # JSON; missing in libraries that were made before there was one
    ]
)

FAILURES = pa.schema(
    [
        key("uri", 1),
        key("stage", 2),
        required("error_class", pa.string()),
        required("message", pa.string()),
        required("attempts", pa.int32()),
        required("failed_at", pa.timestamp("us", tz="UTC")),
    ]
)

SOURCES = pa.schema(
    [
        key("uri", 1),
        required("video_id", pa.string()),
        pa.field("size_bytes", pa.int64()),
        required("stamp", pa.string()),
        required("seen_at", pa.timestamp("us", tz="UTC")),
    ]
)

RUNS = pa.schema(
    [
        key("run_id", 1),
        required("kind", pa.string()),
        required("state", pa.string()),
        required("started_at", pa.timestamp("us", tz="UTC")),
        pa.field("ended_at", pa.timestamp("us", tz="UTC")),
        required("report", pa.string()),  # JSON
    ]
)

LEASES = pa.schema(
    [
        key("name", 1),
        required("token", pa.string()),  # empty: nobody holds it
        required("owner", pa.string()),
        required("host", pa.string()),
        required("boot", pa.string()),  # empty: the holder's process cannot be looked up
        required("pid", pa.int64()),
        required("process_start", pa.int64()),
        required("since", pa.timestamp("us", tz="UTC")),
        required("beat", pa.int64()),
        required("beat_at", pa.timestamp("us", tz="UTC")),
    ]
)

FRAMES = pa.schema(
    [
        required("video_id", pa.string()),
        required("frame_no", pa.int32()),
        required("frame_key", pa.int64()),
        required("time_s", pa.float64()),
        required("width_px", pa.int32()),
        required("height_px", pa.int32()),
        required("jpeg", pa.binary()),
        pa.field(CHECKSUM, pa.uint32()),  # null in libraries that were made before there was one
    ]
)

SEGMENTS = pa.schema(
    [
        required("video_id", pa.string()),
        required("segment_no", pa.int32()),
        required("start_s", pa.float64()),
        required("end_s", pa.float64()),
        required("kind", pa.string()),
    ]
)

DETECTIONS = pa.schema(
    [
        required("video_id", pa.string()),
        required("frame_no", pa.int32()),
        required("time_s", pa.float64()),
        required("label", pa.string()),
        required("score", pa.float32()),
        required("box", pa.list_(pa.float32(), 4)),  # x0, y0, x1, y1, each 0 to 1
        pa.field("track_id", pa.int64()),
        required("model", pa.string()),
    ]
)

WORD = [required("text", pa.string()), required("start_s", pa.float64()), required("end_s", pa.float64())]

TRANSCRIPT = pa.schema(
    [
        required("video_id", pa.string()),
        required("start_s", pa.float64()),
        required("end_s", pa.float64()),
        required("text", pa.string()),
        required("source", pa.string()),
        pa.field("language", pa.string()),
        pa.field("speaker", pa.string()),
        pa.field("model", pa.string()),  # of lines that a speech model wrote
        pa.field("words", pa.list_(pa.struct(WORD))),  # missing in libraries that were made before there was one
    ]
)

ADDITIONS = pa.schema(
    [
        key("video_id", 1),
        key("stage", 2),
        key("model", 3),
        required("rows", pa.int32()),
        required("settings", pa.string()),
        required("added_at", pa.timestamp("us", tz="UTC")),
        pa.field(ADDED_DIGEST, pa.string()),  # missing in libraries that were made before there was one
    ]
)
