"""Tables of a library: their columns and metadata.

Pixels and vectors live in different tables, because searching must not read pictures and compaction must not copy
them. Library-wide facts are schema metadata of `videos`, which is created last: where it is, all is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.errors import LibraryDamaged, NewerLibrary, NotALibrary
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.spaces.fingerprint import MOST_DIMENSIONS, NO_SPACE, Fingerprint
from kinodex.index.stored_json import altered, number_of, read_facts, read_json, read_object

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
MAPPED_PREFIX = "map_"
"""Of tables of what a user's function makes, by the name that its rows were given."""
EXTRACTS_PREFIX = "extracts_"
"""Of tables of rows that a model fills in under a schema, one for each version."""
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
SHARED_STAGES = (*LINE_KINDS, "detections", "chapters", "shots")
"""Optional stages with one table, of the same name, for all models."""
OWN_STAGES = ("vectors", "sentences", "clips", "map", "extracts")
"""Optional stages with a table for each model, whose name begins with theirs: `clips_...`."""
STAGES = (*SHARED_STAGES, *OWN_STAGES)


@dataclass(frozen=True, slots=True)
class Heading:
    """Facts about a whole library, from the metadata of its `videos` table."""

    format_version: int
    settings: Mapping[str, Any]
    fingerprint: Fingerprint


def vectors_table(fingerprint: Fingerprint, prefix: str = VECTORS_PREFIX) -> str:
    """Name the table that holds a space's vectors, of frames, or of sentences and clips by their prefix."""
    name = PurePath(fingerprint.name).name if prefix == CLIPS_PREFIX else fingerprint.name
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[-40:]
    return f"{prefix}{words}_{fingerprint.digest}"


def own_vectors_table(fingerprint: Fingerprint) -> str | None:
    """Name the table of vectors that ingest fills; None in a library without a space."""
    return vectors_table(fingerprint) if fingerprint.has_vectors else None


def table_schemas(settings: Mapping[str, Any], fingerprint: Fingerprint) -> dict[str, pa.Schema]:
    """Make the schema of every table that a new library has, by name, `videos` last."""
    facts = {FORMAT_KEY: str(FORMAT_VERSION), SETTINGS_KEY: json.dumps(settings, sort_keys=True)}
    own = own_vectors_table(fingerprint)
    return {
        **FIRST_TABLES,
        **({} if own is None else {own: vectors_schema(fingerprint)}),
        "captions": captions_schema(fingerprint.dim),
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
    """Return the columns that a table of this name has, by the `own` tables of its library.

    Return None for a user's table.
    """
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
    if space != NO_SPACE and not 0 < space.dim <= MOST_DIMENSIONS:
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
        source=TEXT,  # the kind of the line: speech, screen_text or captions
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
    """Return the digest of the space of the captions' vectors: it is noted once the library's own space was changed."""
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
        vector=nullable(pa.list_(pa.float16(), max(dim, 1))),  # all null without a space
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
LINES = _table(
    video_id=TEXT,
    start_s=FLOAT64,
    end_s=FLOAT64,
    text=TEXT,
    terms=TEXT,
    confidence=nullable(pa.float32()),
    model=TEXT,
)
"""A kind of lines that needs no columns of its own."""
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
METADATA = _table(video_id=key(1), row_digest=nullable(TEXT))  # and the library's own columns: `index.metadata`
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
FIRST_TABLES: dict[str, pa.Schema] = {
    "frames": FRAMES,
    "segments": SEGMENTS,
    "detections": DETECTIONS,
    "speech": SPEECH,
    "additions": ADDITIONS,
    "failures": FAILURES,
    "sources": SOURCES,
    "runs": RUNS,
    "leases": LEASES,
}
"""Tables that every library has, besides those whose columns depend on its space: see `table_schemas`."""
SPACE_TABLES = ("captions", "videos")
LATE_TABLES: dict[str, pa.Schema] = {
    **{kind: LINES for kind in LINE_KINDS if kind not in (*FIRST_TABLES, *SPACE_TABLES)},
    "notes": NOTES,
    "screen_text": SCREEN_TEXT,
    "chapters": CHAPTERS,
    "speakers": SPEAKERS,
    "shots": SHOTS,
    "metadata": METADATA,
}
"""Tables that a library gets once something needs them; readers take one that is not there for one without rows."""
OUR_TABLES = (
    *FIRST_TABLES,
    *SPACE_TABLES,
    *LATE_TABLES,
    VECTORS_PREFIX,
    SENTENCES_PREFIX,
    CLIPS_PREFIX,
    MAPPED_PREFIX,
    EXTRACTS_PREFIX,
)
"""Beginnings of the names of all tables that kinodex makes."""
