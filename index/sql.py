"""SQL over all tables of a library, by DuckDB, which reads and never writes: `kinodex sql`, `library.sql`.

Rows are those that readers see: of complete videos, of the newest model, at times that a player shows. A query has no
access to files, to the network, or to variables of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kinodex.index.annotations.chapters import CHAPTERS
from kinodex.index.conditions import LEAST_LIKENESS
from kinodex.index.errors import QueryError
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.library import LibraryReader
from kinodex.index.store.held_tables import present
from kinodex.index.store.schema import ADDED_DIGEST, ROW_DIGEST
from kinodex.index.utf8 import checked_text

if TYPE_CHECKING:
    import duckdb

LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
}
LATE = "CASE WHEN s.zero_s = 0 THEN r.{name} ELSE round(r.{name} - s.zero_s, 9) END AS {name}"
PLAIN = ("additions", "failures")
"""Tables that are shown as they are."""
COLUMNS = {
    "frames": ["video_id", "frame_no", "time_s", "width_px", "height_px"],  # without their pictures
    "segments": ["video_id", "segment_no", "start_s", "end_s", "kind"],
    "detections": ["video_id", "frame_no", "time_s", "label", "score", "box", "track_id", "model"],
    "chapters": ["video_id", "level", "number", "start_s", "end_s", "title", "text", "model"],
}


def query(
    library: LibraryReader, sql: str, more: Mapping[str, pa.Table] = MappingProxyType({})
) -> duckdb.DuckDBPyRelation:
    """Run one SELECT; its result as a relation of DuckDB: `.to_arrow_table()`, `.df()`, `.pl()`, `.fetchall()`.

    It may name `more` tables beside the library's. Raises QueryError, which names the tables there are, for anything
    else and for a query that cannot be run.
    """
    import duckdb

    checked_text(sql)
    connection = duckdb.connect(config=LOCKED)
    views = _views(library) | dict.fromkeys(more, lambda connection, name: connection.register(name, more[name]))
    try:
        statements = connection.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            got = ", ".join(each.type.name for each in statements) or "nothing"
            raise QueryError(f"got {got} as SQL; give one SELECT: a library is read, and nothing of it is written")
        for name in _named(sql, views):
            views[name](connection, name)
        connection.execute("SET lock_configuration = true")
        rows = connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise _query_error(library, sql, str(error), list(views)) from error
    return connection.from_arrow(rows)


View = Callable[["duckdb.DuckDBPyConnection", str], object]
"""Makes the view of a name."""


def _named(sql: str, views: Mapping[str, View]) -> list[str]:
    """Return the tables whose names stand in a query: the others are not opened."""
    return [name for name in views if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE)]


def _views(library: LibraryReader) -> dict[str, View]:
    versions = library.extracts.versions()
    extracts = dict.fromkeys([*(each.name for each in versions), *(each.key for each in versions)])
    return {
        "videos": partial(_videos, library),
        "frames": partial(_shown, library, table="frames", columns=COLUMNS["frames"], stage=None),
        "segments": partial(_segments, library),
        "lines": partial(_lines, library),
        # by all models
        "detections": partial(
            _shown, library, table="detections", columns=COLUMNS["detections"], stage="detections", every_model=True
        ),
        "chapters": partial(_shown, library, table=CHAPTERS, columns=COLUMNS["chapters"], stage=CHAPTERS),
        **{name: partial(_plain, library) for name in PLAIN},
        **{name: partial(_extract, library) for name in extracts},
    }


def _videos(library: LibraryReader, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a view of the complete videos with the library's own columns."""
    shown = [name for name in library.tables.schema("videos").names if name not in ("digests", "state", "start_s")]
    videos = library.video_columns(shown)
    rows = library.visible.videos()
    starts = pa.array([rows[id_].start_s for id_ in videos["video_id"].to_pylist()], pa.float64())
    ends = pa.array([rows[id_].end_s for id_ in videos["video_id"].to_pylist()], pa.float64())
    connection.register("_videos", videos.append_column("start_s", starts).append_column("end_s", ends))
    if not present(library.tables, ["metadata"]) or not library.metadata.columns():
        connection.execute(f"CREATE VIEW {_quoted(name)} AS SELECT * FROM _videos")
        return
    connection.register("_metadata", library.tables["metadata"])
    own = ", ".join(["video_id", *map(_quoted, library.metadata.columns())])
    connection.execute(
        f"CREATE VIEW {_quoted(name)} AS SELECT * FROM _videos LEFT JOIN (SELECT {own} FROM _metadata) USING (video_id)"
    )


def _segments(library: LibraryReader, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Shots on their frames where they were added, else the segments of ingest."""
    _shown(library, connection, "_of_ingest", "segments", COLUMNS["segments"], None)
    if not present(library.tables, ["shots"]):
        connection.execute(f"CREATE VIEW {_quoted(name)} AS SELECT * FROM _of_ingest")
        return
    _shown(library, connection, "_shots", "shots", COLUMNS["segments"], "shots")
    connection.execute(
        f"CREATE VIEW {_quoted(name)} AS SELECT * FROM _shots UNION ALL BY NAME "
        "SELECT * FROM _of_ingest WHERE video_id NOT IN (SELECT video_id FROM _shots)"
    )


def _lines(library: LibraryReader, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a view of the lines of all kinds."""
    selects = []
    names = library.speakers.names()
    spoken = pa.table(
        {"speaker": pa.array(list(names), pa.string()), "name": pa.array(list(names.values()), pa.string())}
    )
    connection.register("_speakers", spoken)
    for source in LINE_KINDS:
        if not present(library.tables, [source]):
            continue
        said = [name for name in ("speaker", "language", "confidence") if name in library.tables.schema(source).names]
        view = f"_{source}"
        _shown(library, connection, view, source, ["video_id", "start_s", "end_s", "text", "model", *said], source)
        selects.append(f"SELECT *, '{source}' AS kind FROM {_quoted(view)}")
    connection.execute(
        f"CREATE VIEW {_quoted(name)} AS "
        "SELECT l.* REPLACE (coalesce(n.name, replace(l.speaker, '-', ' ')) AS speaker) "
        f"FROM ({' UNION ALL BY NAME '.join(selects)}) l LEFT JOIN _speakers n ON n.speaker = l.speaker"
    )


def _plain(library: LibraryReader, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a view of a table as it is."""
    rows = library.tables.rows(name)
    connection.register(
        name, rows.drop_columns([each for each in (ADDED_DIGEST, ROW_DIGEST) if each in rows.column_names])
    )


def _extract(library: LibraryReader, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a view of the rows of an extract; of parts without a reply there are none."""
    rows = library.extracts.rows(name)
    connection.register(name, rows.filter(rows["fault"].is_null()).drop_columns(["fault"]))


def _shown(
    library: LibraryReader,
    connection: duckdb.DuckDBPyConnection,
    view: str,
    table: str,
    columns: list[str],
    stage: str | None,
    *,
    every_model: bool = False,
) -> None:
    """Make a view of the rows of a table that readers see; they are read when a query asks, and only its columns."""
    tables = library.tables
    if is_there := bool(present(tables, [table])):
        columns = [name for name in columns if name in tables.schema(table).names]
    models = library.visible.models(stage) if stage else {}
    pairs = [
        (id_, model, row.zero_s)
        for id_, row in library.visible.videos().items()
        for model in _models_of(models.get(id_, ()), stage, table, every_model)
    ]
    ids, names, zeros_s = zip(*pairs, strict=True) if pairs else ((), (), ())
    seen = pa.table(
        {
            "video_id": pa.array(ids, pa.string()),
            "seen": pa.array(names, pa.string()),
            "zero_s": pa.array(zeros_s, pa.float64()),
        }
    )
    connection.register(f"{view}_seen", seen)
    if not is_there:
        rows: Any = pa.table({name: pa.array([], pa.string()) for name in columns})
    elif any(name == "vector" for name in tables.schema(table).names):  # of 16 bits, which DuckDB does not know
        rows = tables.rows(table, None, columns)
    else:
        rows = tables[table]
    connection.register(f"{view}_rows", rows)
    shown = [LATE.format(name=name) if name.endswith("_s") else f"r.{name}" for name in columns]
    of_model = "AND s.seen IS NOT DISTINCT FROM r.model" if stage else ""
    connection.execute(
        f"CREATE VIEW {_quoted(view)} AS SELECT {', '.join(shown)} FROM {_quoted(f'{view}_rows')} r "
        f"JOIN {_quoted(f'{view}_seen')} s ON s.video_id = r.video_id {of_model}"
    )


def _models_of(models: tuple[str, ...], stage: str | None, table: str, every_model: bool) -> tuple[str | None, ...]:
    if stage is None:
        return (None,)
    shown = models if every_model else models[-1:]
    return (None, *shown) if table == "speech" else shown  # subtitles have no model


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _query_error(library: LibraryReader, sql: str, text: str, names: list[str]) -> QueryError:
    """Return the error of a query that cannot be run, in one line."""
    reason = " ".join(text.split("\n\nLINE")[0].split())
    reason = reason.partition(" Did you mean")[0] if "Table with name" in reason else reason
    if unknown := re.search(r"Table with name (\S+) does not exist", reason):
        near = get_close_matches(unknown[1].lower(), names, n=1, cutoff=LEAST_LIKENESS)
        reason = f"there is no table {unknown[1]}{f'; did you mean {near[0]}?' if near else ''}"
    if "file system operations are disabled" in reason:
        reason = f"{reason}: SQL reads only the library"
    return QueryError(f"got {sql!r:.200}: {reason}; the tables of {library.uri} are {', '.join(names)}")
