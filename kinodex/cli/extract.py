"""`kinodex extract` and `kinodex sql`: a table filled in from the parts of videos, and SQL over all tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kinodex.cli.add import run_at_model
from kinodex.cli.options import ALL, WRITING, Among, JsonOption, LibraryArgument, Writing, open_library, with_groups
from kinodex.index.text import visible
from kinodex.jobs.errors import UsageError
from kinodex.output import console, plain_table, print_json


@with_groups
def extract(
    library: LibraryArgument,
    schema: Annotated[Path, typer.Option(help="A JSON schema: of an object, a row a part, or an array of them.")],
    into: Annotated[str, typer.Option(help="Name of the table: small letters, digits and _.")],
    model: Annotated[
        str, typer.Option("--model", help="A model of --base-url, or constrained:FOLDER, which sees no frames.")
    ],
    writing: Writing = WRITING,
    each: Annotated[
        str | None, typer.Option(help="The parts: video, chapter, scene, shot, or window:SECONDS. Default: scene.")
    ] = None,
    search: Annotated[str | None, typer.Option(help="Instead: moments of each video that these words find.")] = None,
    hits: Annotated[int, typer.Option("-k", min=1, max=1000, help="Moments of a video that --search finds.")] = 5,
    frames_a_part: Annotated[int, typer.Option(min=0, max=64, help="Frames of a part that the model is shown.")] = 8,
    lines_a_part: Annotated[
        int, typer.Option(min=0, max=1000, help="Lines of a part, said, on screen and captions, that it is given.")
    ] = 60,
    among: Among = ALL,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also the parts of which no reply could be used before.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fill in a table from each part of the videos, by a model under a schema; run again, it does only what is new.

    Each row has its part, the time of its evidence, the model and its price. Another schema is another version:
    `kinodex remove added LIBRARY extracts NAME@DIGEST` takes one out. `kinodex sql` reads them.
    """
    from kinodex.jobs.add.extract import extraction, read_schema_file

    if each is not None and search is not None:
        raise UsageError("got --each and --search; leave one out")
    parts = {"part": "search", "search": search, "hits": hits} if search is not None else {"part": each or "scene"}
    common = writing.settings(model)
    stage = extraction(
        into,
        read_schema_file(schema),
        asks=str(common.pop("model")),
        **common,
        **parts,
        frames_a_part=frames_a_part,
        lines_a_part=lines_a_part,
        again=retry_failed,
    )
    again = (lambda opened: opened.extracts.faulty(stage.model)) if retry_failed else None
    run_at_model(library, stage, among, writing, json, again, "rows", frames_needed=False)


def sql(
    library: LibraryArgument,
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT, in DuckDB's SQL; - reads it from stdin.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: JsonOption = False,
) -> None:
    """Run SQL over a library: videos, frames, segments, lines, detections, chapters, additions, failures, extracts.

    Nothing is written, and nothing but the library is read. Rows with video_id, start_s and end_s are moments:
    `kinodex export clips LIBRARY FOLDER --from-sql SELECT`.
    """
    from kinodex.index.sql import query as run_query

    rows = run_query(open_library(library), sys.stdin.read() if query == "-" else query).to_arrow_table()
    if json:
        print_json(rows.to_pylist())
    elif csv:
        from pyarrow.csv import write_csv

        sys.stdout.flush()
        write_csv(rows, sys.stdout.buffer)
    else:
        table = plain_table(*rows.column_names)
        for row in rows.to_pylist():
            table.add_row(*("" if value is None else visible(str(value)) for value in row.values()))
        console().print(table, markup=False)
        print(f"{rows.num_rows:,} rows")
