"""Tables of a library, their columns and metadata; filters of rows, built from typed values; and digests of rows."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial, reduce
from hashlib import blake2b
from itertools import islice
from numbers import Integral
from operator import and_
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinodex.index.errors import (
    LibraryDamaged,
    NewerLibrary,
    NotALibrary,
    altered,
    checked_text,
    number_of,
    read_facts,
    read_json,
    read_object,
)
from kinodex.index.spaces.towers import MOST_DIMENSIONS, Fingerprint

if TYPE_CHECKING:
    from kinodex.index.store.database import Tables

# Filters, built from typed values: these are turned into SQL in one place, and quoted there.

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
    """Write a value as SQL, a time of day as a text; raises QueryError for a text that is not UTF-8."""
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
# Pixels and vectors live in different tables, because searching must not read pictures and compaction must not copy
# them. Library-wide facts are schema metadata of `videos`, which is created last: where it is, all is.

FORMAT_VERSION = 1
FORMAT_KEY, SETTINGS_KEY, SPACE_KEY = b"kinodex.format", b"kinodex.settings", b"kinodex.space"
COLUMNS_KEY = b"kinodex.columns"
"""Metadata of a table: the names, as JSON, of the columns that kinodex made. Others may have been added since."""
SETTINGS_OF_NUMBERS = frozenset({"fps", "jpeg_side_px", "jpeg_quality", "window_s"})
"""Those settings of a library that are read as numbers."""
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds since 1970."""
LARGEST_NUMBER = 1e12
"""No time, rate or cost is as large; NaN is not less either."""
MOST_DIGITS = 9
LIKENESS_KEY = b"kinodex.likeness"
"""Metadata of a table of sentences: the cosines of texts that have nothing in common (`sentence_model.Likeness`)."""
VECTORS_PREFIX = "vectors_"
SENTENCES_PREFIX = "sentences_"
CLIPS_PREFIX = "clips_"
"""Of tables of windows of videos as vectors."""
EMBEDDING_KEY = b"embedding_functions"
"""Metadata of tables of vectors by which LanceDB embeds what is looked for there (see `kinodex.lancedb`)."""
MAPPED_PREFIX = "mapped_"
"""Of tables of what a user's function makes, by the name that its rows were given."""
EXTRACTS_PREFIX = "extracts_"
"""Of tables of rows that a model fills in under a schema, one for each version."""
KEY_BITS = 24
"""Bits of a stored key that hold a frame's number; larger numbers than they hold change the upper bits, too."""
FRAME_NO_BITS = 32
"""More than enough for any number of a frame, which is an int32: for keys that are not stored."""
LAST_FRAME_NO = 2**31 - 1
CHECKSUM = "jpeg_crc32"
"""Column of `frames` with the CRC-32 of the picture: Lance keeps no checksum of its files."""
VIDEO_DIGESTS = "digests"
"""Column of `videos` with the digests of a video's rows (see below)."""
ZERO = "zero_s"
"""Column of `videos` with the presentation time of what a player shows as 0:00."""
ADDED_DIGEST = "digest"
"""Column of `additions` with the digest of the rows that were added."""
ROW_DIGEST = "row_digest"
"""Column of tables whose rows belong to no digest of a video or an addition: of the row itself."""
SHARED_STAGES = ("captions", "detections", "speech", "screen_text", "chapters", "shots")
"""Optional stages with one table, of the same name, for all models."""
OWN_STAGES = ("vectors", "sentences", "clips", "mapped", "extracts")
"""Optional stages with a table for each model, whose name begins with theirs: `clips_...`."""
STAGES = (*SHARED_STAGES, *OWN_STAGES)


@dataclass(frozen=True, slots=True)
class Heading:
    """Facts about a whole library, from the metadata of its `videos` table."""

    format_version: int
    settings: Mapping[str, Any]
    fingerprint: Fingerprint


def frame_key(video_id: str, frame_no: int) -> int:
    """Make an integer of (video, frame): 39 bits of the id's sha256 plus the number above its 24 bits, then these.

    One indexed `IN` over such keys fetches frames of many videos 12 times quicker than an OR of pairs. Two videos may
    share a key, so a reader checks `video_id` too.
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
    """Name the table that holds a space's vectors, of frames, or of sentences and clips by their prefix."""
    name = PurePath(fingerprint.name).name if prefix == CLIPS_PREFIX else fingerprint.name
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[-40:]
    return f"{prefix}{words}_{fingerprint.digest}"


def table_schemas(settings: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, pa.Schema]:
    """Make the schema of every table, by name, `videos` last."""
    facts = {FORMAT_KEY: str(FORMAT_VERSION), SETTINGS_KEY: json.dumps(settings, sort_keys=True)}
    return {
        "frames": FRAMES,
        vectors_table(fingerprint): vectors_schema(fingerprint),
        "segments": SEGMENTS,
        "captions": captions_schema(fingerprint.dim),
        "detections": DETECTIONS,
        "speech": SPEECH,
        "additions": ADDITIONS,
        "failures": FAILURES,
        "sources": SOURCES,
        "runs": RUNS,
        "leases": LEASES,
        "videos": VIDEOS.with_metadata(facts | identity(fingerprint)),
    }


def read_heading(schema: pa.Schema, uri: str) -> Heading:
    """Read the metadata of `videos`; raises NotALibrary, NewerLibrary or LibraryDamaged."""
    metadata = schema.metadata or {}
    if FORMAT_KEY not in metadata:
        raise NotALibrary(f"got {uri}, Lance tables that kinodex did not make; give a library")
    if not metadata[FORMAT_KEY].isdigit():
        raise altered(f"the format of {uri}", repr(metadata[FORMAT_KEY]))
    version = int(metadata[FORMAT_KEY][:MOST_DIGITS])
    if version > FORMAT_VERSION:
        raise NewerLibrary(f"{uri} has format {version}, and this kinodex reads {FORMAT_VERSION}; update kinodex")
    what = f"the settings of {uri}"
    settings = read_object(metadata.get(SETTINGS_KEY, ""), what)
    for name in SETTINGS_OF_NUMBERS & settings.keys():
        number_of(settings, name, 1.0, what)
    check_columns(schema, VIDEOS, "videos", uri)
    return Heading(version, settings, read_space(schema, uri))


def check_columns(found: pa.Schema, wanted: pa.Schema, name: str, uri: str) -> None:
    """Raise LibraryDamaged if a table lacks a column that it has in every library, or has one of another type."""
    lacks = sorted(set(wanted.names).difference(found.names))
    if lacks:
        raise altered(f"the table {name} of {uri}", f"it has no column {lacks[0]}")
    if unnamed := sorted({*wanted.names}.intersection(found.names).difference(own_columns(found))):
        raise altered(f"the table {name} of {uri}", f"its metadata do not name its column {unnamed[0]}")
    for column in (each for each in wanted if each.name in found.names):
        held = found.field(column.name).type
        if held != column.type and not (name == "captions" and column.name == "vector"):  # of any space's length
            raise altered(
                f"the table {name} of {uri}", f"its column {column.name} is of type {held}, not {column.type}"
            )


def check_values(rows: pa.Table | pa.RecordBatch, wanted: pa.Schema, what: str) -> None:
    """Raise LibraryDamaged for a time that no clock and no file can have."""
    for column in (rows.schema.field(name) for name in wanted.names if name in rows.schema.names):
        values = rows[column.name]
        if pa.types.is_timestamp(column.type):
            ends = pc.min_max(values.cast(pa.int64()))
            is_wrong = ends["min"].is_valid and not FIRST_US <= ends["min"].as_py() <= ends["max"].as_py() < LAST_US
        else:
            is_wrong = (
                pa.types.is_float64(column.type) and pc.all(pc.less(pc.abs(values), LARGEST_NUMBER)).as_py() is False
            )
        if is_wrong:
            raise altered(
                what, f"a value of its column {column.name} is none; `kinodex maintain --check` names its row"
            )


def check_additions(found: pa.Schema, wanted: pa.Schema, name: str, uri: str) -> None:
    """Raise LibraryDamaged for a column that somebody added and that may hold no null: no row could be written."""
    for column in found:
        if column.name not in wanted.names and not column.nullable:
            raise LibraryDamaged(
                f"cannot write to the table {name} of {uri}: somebody added the column {column.name}, which may hold "
                "no null; nothing was written: drop the column, or add it again as one that may"
            )


def wanted_schema(name: str, found: pa.Schema, own: Mapping[str, pa.Schema]) -> pa.Schema | None:
    """The columns that a table of this name has, by the `own` tables of its library; None for what a user's has."""
    if name in own:
        return own[name]
    if name in LATE_TABLES:
        return LATE_TABLES[name]
    if name.startswith(EXTRACTS_PREFIX):
        return extracts_schema(pa.schema([]))
    made: dict[str, Callable[[Fingerprint], pa.Schema]] = {
        VECTORS_PREFIX: vectors_schema,
        SENTENCES_PREFIX: partial(sentences_schema, likeness={}),
        CLIPS_PREFIX: clips_schema,
    }
    for prefix, schema_of in made.items():
        if name.startswith(prefix):
            return schema_of(read_space(found, f"the table {name}"))
    return None


def read_space(schema: pa.Schema, name: str) -> Fingerprint:
    """Read the space from the metadata of `videos` or of a table of vectors; raises LibraryDamaged, naming it."""
    what = f"the space of {name}"
    space = read_facts(Fingerprint, (schema.metadata or {}).get(SPACE_KEY, ""), what)
    if not 0 < space.dim <= MOST_DIMENSIONS:
        raise altered(what, f"it has {space.dim} dimensions")
    return space


def naming_columns(schema: pa.Schema) -> pa.Schema:
    """Note the columns of a table that kinodex makes in its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), COLUMNS_KEY: json.dumps(schema.names)})


def own_columns(schema: pa.Schema) -> list[str]:
    """List the columns that kinodex made, of those that a table has; all where nothing is noted."""
    noted = (schema.metadata or {}).get(COLUMNS_KEY)
    names: list[str] = schema.names
    if noted is None:
        return names
    own = read_json(noted, "the list of a table's columns")
    if not isinstance(own, list):
        raise altered("the list of a table's columns", f"it is {str(own)[:80]!r}")
    return [name for name in names if name in own]


def primary_key(schema: pa.Schema) -> list[str]:
    """List the columns of a table's key, in order; none where it has no key."""
    marked = [each for each in schema if KEY_POSITION in (each.metadata or {})]
    return [each.name for each in sorted(marked, key=lambda each: int(each.metadata[KEY_POSITION]))]


def vectors_schema(fingerprint: Fingerprint) -> pa.Schema:
    """Make the schema of a space's vectors; its metadata holds the whole fingerprint."""
    vector = pa.list_(pa.float16(), fingerprint.dim)
    columns = _table(video_id=TEXT, frame_no=INT32, time_s=FLOAT64, vector=vector)
    return columns.with_metadata(identity(fingerprint) | embedding_function(fingerprint, "frames", "jpeg"))


def sentences_schema(fingerprint: Fingerprint, likeness: Mapping[str, float]) -> pa.Schema:
    """Make the schema of lines as vectors of a sentence model; its metadata holds the model's identity."""
    columns = _table(
        video_id=TEXT,
        source=TEXT,  # transcript, text, caption
        start_s=FLOAT64,
        end_s=FLOAT64,
        text=TEXT,
        model=nullable(TEXT),  # that wrote the text
        vector=pa.list_(pa.float16(), fingerprint.dim),
    )
    measured: dict[bytes, str] = {LIKENESS_KEY: json.dumps(dict(likeness), sort_keys=True)}
    facts = identity(fingerprint) | measured
    return columns.with_metadata(facts | embedding_function(fingerprint, "sentences", "text"))


def clips_schema(fingerprint: Fingerprint) -> pa.Schema:
    """Make the schema of windows of videos as vectors of a model; its metadata holds the model's identity."""
    vector = pa.list_(pa.float16(), fingerprint.dim)
    columns = _table(video_id=TEXT, clip_no=INT32, start_s=FLOAT64, end_s=FLOAT64, vector=vector)
    return columns.with_metadata(identity(fingerprint) | embedding_function(fingerprint, "clips", "jpeg"))


def identity(fingerprint: Fingerprint) -> dict[bytes, str]:
    """Make the metadata that name a space."""
    return {SPACE_KEY: json.dumps(asdict(fingerprint), sort_keys=True)}


def embedding_function(fingerprint: Fingerprint, of: str, source: str) -> dict[bytes, str]:
    """Make the metadata by which LanceDB embeds what is looked for; the model by its digest: names have paths."""
    model = {"space": fingerprint.digest, "of": of}
    function = {"name": "kinodex", "model": model, "source_column": source, "vector_column": "vector"}
    return {EMBEDDING_KEY: json.dumps([function])}


def extract_table(key: str) -> str:
    """Name the table of a version of an extract, by its key NAME@DIGEST."""
    return f"{EXTRACTS_PREFIX}{key.replace('@', '_')}"


COMMON_COLUMNS = (
    *("video_id", "part_no", "row_no", "start_s", "end_s"),
    *("evidence_start_s", "evidence_end_s", "text", "terms", "model", "cost", "fault"),
)
"""Columns that every extract has."""


def extracts_schema(columns: pa.Schema) -> pa.Schema:
    """Make the schema of an extract, with the columns of its own between part and evidence."""
    part = _table(video_id=TEXT, part_no=INT32, row_no=INT32, start_s=FLOAT64, end_s=FLOAT64)
    rest = _table(
        evidence_start_s=nullable(FLOAT64),
        evidence_end_s=nullable(FLOAT64),
        text=TEXT,  # all texts of the row, by which it is found
        terms=TEXT,
        model=TEXT,
        cost=FLOAT64,  # of its reply, divided among the rows of that
        fault=nullable(TEXT),  # why the part has no row: no reply could be used
    )
    return pa.schema([*part, *columns, *rest])


def captions_space(schema: pa.Schema, own: str | None) -> str | None:
    """The digest of the space of the captions' vectors: it is noted once the library's own space was changed."""
    metadata = schema.metadata or {}
    return read_space(schema, "the table captions").digest if SPACE_KEY in metadata else own


def captions_schema(dim: int) -> pa.Schema:
    """Make the schema of captions, which are searched by word and, in the library's own space, by meaning."""
    return _table(
        video_id=TEXT,
        segment_no=INT32,
        start_s=FLOAT64,
        end_s=FLOAT64,
        text=TEXT,
        terms=TEXT,  # of the text, as searches compare them (see `kinodex.index.terms`); so in all tables of lines
        confidence=nullable(pa.float32()),
        model=TEXT,
        vector=nullable(pa.list_(pa.float16(), dim)),
    )


TEXT, INT32, INT64, FLOAT64 = pa.string(), pa.int32(), pa.int64(), pa.float64()
TIME = pa.timestamp("us", tz="UTC")
BOX = pa.list_(pa.float32(), 4)
"""x0, y0, x1, y1, each 0 to 1."""


def nullable(kind: pa.DataType) -> pa.Field:
    """Make a column that may hold nulls."""
    return pa.field("", kind)


KEY_POSITION = b"lance-schema:unenforced-primary-key:position"


def key(position: int) -> pa.Field:
    """Make a column of the primary key, without which concurrent upserts of one row leave it there twice."""
    marks = {b"lance-schema:unenforced-primary-key": "true", KEY_POSITION: str(position)}
    return pa.field("", TEXT, nullable=False, metadata=marks)


def _table(**columns: pa.DataType | pa.Field) -> pa.Schema:
    """Make the schema of a table; its columns hold no nulls unless they are `nullable`."""
    return pa.schema(
        [
            kind.with_name(name) if isinstance(kind, pa.Field) else pa.field(name, kind, nullable=False)
            for name, kind in columns.items()
        ]
    )


VIDEOS = _table(
    video_id=key(1),
    uri=TEXT,
    title=TEXT,
    start_s=FLOAT64,
    duration_s=FLOAT64,
    fps=nullable(FLOAT64),
    width_px=INT32,
    height_px=INT32,
    codec=TEXT,
    frames=INT32,
    segments=INT32,
    speech_lines=INT32,
    decode_errors=INT32,
    sample_fps=FLOAT64,
    space=TEXT,
    state=TEXT,
    ingested_at=TIME,
    digests=nullable(TEXT),  # JSON; null where a repair wrote the row
    zero_s=nullable(FLOAT64),  # as above
)
FAILURES = _table(
    uri=key(1), stage=key(2), error_class=TEXT, message=TEXT, attempts=INT32, failed_at=TIME, row_digest=nullable(TEXT)
)
SOURCES = _table(
    uri=key(1),
    video_id=TEXT,
    size_bytes=nullable(INT64),
    stamp=TEXT,  # empty: its file system gives none
    seen_at=TIME,
    mount=nullable(TEXT),
    row_digest=nullable(TEXT),  # missing there too, as in the other tables that have it
)
RUNS = _table(
    run_id=key(1),
    kind=TEXT,
    state=TEXT,
    started_at=TIME,
    ended_at=nullable(TIME),
    report=TEXT,
    row_digest=nullable(TEXT),
)
LEASES = _table(
    name=key(1),
    token=TEXT,  # empty: nobody holds it
    owner=TEXT,
    host=TEXT,
    boot=TEXT,  # empty: the holder's process cannot be looked up
    pid=INT64,
    process_start=INT64,
    since=TIME,
    beat=INT64,
    beat_at=TIME,
)
FRAMES = _table(
    video_id=TEXT,
    frame_no=INT32,
    frame_key=INT64,
    time_s=FLOAT64,
    width_px=INT32,
    height_px=INT32,
    jpeg=pa.binary(),
    jpeg_crc32=nullable(pa.uint32()),
)
SEGMENTS = _table(video_id=TEXT, segment_no=INT32, start_s=FLOAT64, end_s=FLOAT64, kind=TEXT)
DETECTIONS = _table(
    video_id=TEXT,
    frame_no=INT32,
    time_s=FLOAT64,
    label=TEXT,
    score=pa.float32(),
    box=BOX,
    track_id=nullable(INT64),
    model=TEXT,
)
SPEECH = _table(
    video_id=TEXT,
    start_s=FLOAT64,
    end_s=FLOAT64,
    text=TEXT,
    terms=TEXT,
    source=TEXT,
    language=nullable(TEXT),
    speaker=nullable(TEXT),
    model=nullable(TEXT),  # of lines that a speech model wrote
    words=nullable(pa.list_(pa.struct(list(_table(text=TEXT, start_s=FLOAT64, end_s=FLOAT64))))),
)
ADDITIONS = _table(
    video_id=key(1),
    stage=key(2),
    model=key(3),
    rows=INT32,
    settings=TEXT,
    added_at=TIME,
    digest=nullable(TEXT),
)

# Tables that a library gets once something needs them, those of sentences too.
#
# Libraries that were made without them stay as they are, and readers take a table that is not there for one without
# rows.

NOTES = _table(
    video_id=key(1),
    model=key(2),
    part=key(3),  # start_s and end_s as a text, since a key of floats never matches
    start_s=FLOAT64,
    end_s=FLOAT64,
    text=TEXT,
    confidence=nullable(FLOAT64),
    frames=INT32,  # that the model was shown
    row_digest=nullable(TEXT),
)
SCREEN_TEXT = _table(
    video_id=TEXT,
    start_s=FLOAT64,
    end_s=FLOAT64,
    text=TEXT,  # the best of its readings
    terms=TEXT,
    confidence=pa.float32(),
    box=BOX,
    frames=INT32,  # in which it was read
    language=nullable(TEXT),
    model=TEXT,
)
CHAPTERS = _table(
    video_id=TEXT,
    level=TEXT,  # scene, chapter
    number=INT32,
    start_s=FLOAT64,
    end_s=FLOAT64,
    first_segment=INT32,
    segments=INT32,
    title=TEXT,
    text=TEXT,  # its summary
    terms=TEXT,  # of title and summary
    model=TEXT,
)
SPEAKERS = _table(
    speaker=key(1),  # speaker-3
    name=nullable(TEXT),  # that a person gave it
    vector=pa.list_(pa.float32(), 256),  # the mean voice, unit length
    seconds=FLOAT64,  # of speech in the mean
    model=TEXT,
    row_digest=nullable(TEXT),
)
# A film with vectors of the built-in space, which kinodex did not draw:
UNDRAWN = _table(video_id=key(1), row_digest=nullable(TEXT))
# And the library's own columns, see `kinodex.index.metadata`:
METADATA = _table(video_id=key(1), row_digest=nullable(TEXT))
SHOTS = _table(
    video_id=TEXT,
    segment_no=INT32,
    start_s=FLOAT64,
    end_s=FLOAT64,
    kind=TEXT,
    fade_start_s=nullable(FLOAT64),  # of the dissolve or fade that it begins with
    fade_end_s=nullable(FLOAT64),
    model=TEXT,
)
LATE_TABLES = {
    "notes": NOTES,
    "screen_text": SCREEN_TEXT,
    "chapters": CHAPTERS,
    "speakers": SPEAKERS,
    "shots": SHOTS,
    "undrawn": UNDRAWN,
    "metadata": METADATA,
}


# Digests of rows: numbers by which a check finds values that changed on the disk, for Lance keeps no checksum.
#
# A video has one for its rows in each table that ingest fills, an addition one for its rows; rows that belong to
# neither have one each (`ROW_DIGEST`). They hold the columns that kinodex made: somebody may add others to any table.

HASH_BYTES = 16
LEFT_OUT = frozenset({"jpeg", VIDEO_DIGESTS, ADDED_DIGEST, ROW_DIGEST, "ingested_at", "added_at"})
"""Columns that no digest holds: pictures, digests, and times of writing, in which two runs differ."""
ROWS_AT_ONCE = 4096
OWN_ROW = "videos"
"""Name of the digest of a video's row in `videos` itself."""

Digests = Mapping[str, Mapping[str, int]]
"""Digests by table and video."""


def row_hashes(rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Compute the hash of each row."""
    names = sorted(set(rows.schema.names) - LEFT_OUT)
    chosen = rows.select(names)
    batches = chosen.combine_chunks().to_batches() if isinstance(chosen, pa.Table) else [chosen]
    columns = [_labelled(name, [each for batch in batches for each in _values(batch.column(name))]) for name in names]
    return [
        int.from_bytes(blake2b(b"".join(values), digest_size=HASH_BYTES).digest())
        for values in zip(*columns, strict=True)
    ]


def own_hashes(schema: pa.Schema, rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Compute the hash of each row of a table with this schema, without columns that somebody added to it."""
    return row_hashes(rows.select([name for name in own_columns(schema) if name in rows.schema.names]))


def digests_by_video(rows: pa.Table | pa.RecordBatch) -> Counter[str]:
    """Sum the hashes of the rows by video."""
    found: Counter[str] = Counter()
    for video_id, row_hash in zip(rows.column("video_id").to_pylist(), row_hashes(rows), strict=True):
        found[video_id] += row_hash
    return found


def read_batches(tables: Tables, name: str, where: Sequence[Filter]) -> Iterator[pa.RecordBatch]:
    """Read all columns of a table that digests hold, a few rows at a time."""
    columns = [column for column in own_columns(tables.schema(name)) if column not in LEFT_OUT]
    yield from tables.batches(name, all_of(where), columns, rows=ROWS_AT_ONCE, as_stored=True)


def read_digests(tables: Tables, name: str, where: Sequence[Filter]) -> Counter[str]:
    """Compute the digests of the rows that match some filters, by video."""
    found: Counter[str] = Counter()
    for batch in read_batches(tables, name, where):
        found.update(digests_by_video(batch))
    return found


def read_video_digests(text: str | bytes) -> dict[str, Any]:
    """Read the digests in the row of a video; none where they are damaged themselves."""
    try:
        return read_object(text, "the digests of a video")
    except LibraryDamaged:
        return {}


def as_text(digest: int) -> str:
    return f"{digest % (1 << 8 * HASH_BYTES):0{2 * HASH_BYTES}x}"


def _labelled(name: str, values: Iterable[bytes | None]) -> list[bytes]:
    label = name.encode() + b"\0"
    return [b"" if value is None else label + value for value in values]


def _values(array: pa.Array) -> list[bytes | None]:
    """Write each value as bytes; None for a null."""
    if not array.null_count:
        return list(_bytes(array))
    present = iter(_bytes(array.drop_null()))
    return [next(present) if is_there else None for is_there in array.is_valid().to_pylist()]


def _bytes(array: pa.Array) -> Iterable[bytes]:
    """Write the values of an array without nulls as bytes, of which none begins another."""
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [_labelled(field.name, _values(part)) for field, part in zip(kind, array.flatten(), strict=True)]
        return [b"".join(parts) for parts in zip(*fields, strict=True)]
    if pa.types.is_list(kind):
        parts = iter(_values(array.flatten()))
        counts = pc.list_value_length(array).to_pylist()
        return [count.to_bytes(4) + b"".join(part or b"" for part in islice(parts, count)) for count in counts]
    if pa.types.is_fixed_size_list(kind):
        return _cut(array.flatten(), kind.list_size)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):  # damaged letters may be no UTF-8
        values = array.cast(pa.binary()).to_pylist()
        return [len(value).to_bytes(8) + value for value in values]
    return _cut(array.cast(pa.int64()) if pa.types.is_timestamp(kind) else array, 1)


def _cut(numbers: pa.Array, size: int) -> list[bytes]:
    """Cut numbers into the bytes of so many each, bit by bit as they are stored."""
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    content, step = values.tobytes(), size * values.itemsize
    return [content[first : first + step] for first in range(0, len(content), step)]


# Digests of rows that are written one by one.


def with_row_digests(rows: pa.Table, altered: Collection[str] = ()) -> pa.Table:
    """Give each row its digest, in the column for it; those of altered rows stay, which still show it."""
    pairs = zip(texts(rows[ROW_DIGEST]), own_hashes(rows.schema, rows), strict=True)
    digests = pa.array([held if held in altered else as_text(row_hash) for held, row_hash in pairs], pa.string())
    return rows.set_column(rows.schema.get_field_index(ROW_DIGEST), rows.schema.field(ROW_DIGEST), digests)


def are_altered(rows: pa.Table | pa.RecordBatch) -> list[bool]:
    """Say for each row, all of whose columns are there, if it is not as it was written."""
    pairs = zip(texts(rows[ROW_DIGEST]), own_hashes(rows.schema, rows), strict=True)
    return [digest is not None and digest != as_text(row_hash) for digest, row_hash in pairs]


def altered_digests(rows: pa.Table | pa.RecordBatch) -> set[str]:
    """List the digests of altered rows; none where the table has no column for them."""
    if ROW_DIGEST not in rows.schema.names:
        return set()
    pairs = zip(texts(rows[ROW_DIGEST]), are_altered(rows), strict=True)
    return {digest for digest, is_altered in pairs if is_altered and digest is not None}


def texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Read texts that damage may have left without UTF-8."""
    values = column.cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode(errors="replace") for value in values]
