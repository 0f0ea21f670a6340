"""Tables of figures, such as those of an evaluation: drawn for people, or as Markdown for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kinodex.output import console, say

if TYPE_CHECKING:
    from rich.table import Table as Drawn

    from kinodex.jobs.eval.table_cells import Table

GAP = 2
"""Characters between two columns."""


def print_all(lines: Sequence[str], tables: Sequence[Table], as_markdown: bool) -> None:
    if as_markdown:
        from kinodex.jobs.eval.table_cells import markdown

        say("\n\n".join(["  \n".join(lines), *map(markdown, tables)]))
        return
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    for table in tables:
        for part in fitting(table, out.width):
            out.print(_drawn(part))


def fitting(table: Table, width: int) -> list[Table]:
    """Cut a table into parts of at most this many characters a line, if the columns allow; each begins with the names.

    Names may take half of the line; longer ones are folded.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) + GAP for column in zip(table.heads, *table.rows, strict=True)]
    names = tuple(range(table.names))
    room = width - sum(min(widths[each], width // 2 // table.names) for each in names) - GAP
    parts: list[tuple[int, ...]] = [()]
    for number in range(table.names, len(widths)):
        if parts[-1] and sum(widths[each] for each in (*parts[-1], number)) > room:
            parts.append(())
        parts[-1] += (number,)
    titles = (table.title, *(f"{table.title}, continued" for _ in parts[1:]))
    return [_columns(table, title, (*names, *part)) for title, part in zip(titles, parts, strict=True)]


def _columns(table: Table, title: str, columns: Sequence[int]) -> Table:
    heads, *rows = (tuple(row[each] for each in columns) for row in (table.heads, *table.rows))
    return replace(table, title=title, heads=heads, rows=tuple(rows))


def _drawn(table: Table) -> Drawn:
    from rich import box
    from rich.markup import escape
    from rich.table import Table as Drawn

    drawn = Drawn(box=box.SIMPLE_HEAD, title=escape(table.title), title_justify="left", pad_edge=False)
    drawn.collapse_padding = True
    for number, head in enumerate(table.heads):
        is_name = number < table.names
        drawn.add_column(escape(head), justify="left" if is_name else "right", overflow="fold", no_wrap=not is_name)
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn
