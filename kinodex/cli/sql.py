"""`kinodex sql`: run SQL over a library."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kinodex.cli import options
from kinodex.index.terminal_text import visible
from kinodex.output import console, plain_table, print_json, say


def sql(
    library: options.LibraryArgument,
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT, in DuckDB's SQL; - reads it from stdin.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: options.JsonOption = False,
) -> None:
    """Run SQL over a library: videos, frames, segments, lines, detections, chapters, additions, failures, extracts.

    Nothing is written, and nothing but the library is read. Rows with video_id, start_s and end_s are moments:
    `kinodex export clips LIBRARY FOLDER --from-sql SELECT`.
    """
    from kinodex.index.sql import query as run_query

    rows = run_query(options.open_library(library), sys.stdin.read() if query == "-" else query).to_arrow_table()
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
        say(f"{rows.num_rows:,} rows")
