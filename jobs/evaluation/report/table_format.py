"""Tables of figures: for people at a terminal, and as Markdown for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.benchmarks.item import Scoring
from jobs.evaluation.score.report_types import Estimate, Pair
from jobs.evaluation.score.scorers import BEST_JUDGED

if TYPE_CHECKING:
    from rich.table import Table as Drawn

NOTHING = "–"
GAP = 2
"""Characters between two columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, and rows of cells; of the columns so many of the first are names."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1


def print_all(lines: Sequence[str], tables: Sequence[Table], as_markdown: bool) -> None:
    """Print lines of text and then tables on stdout: drawn for people, or as Markdown."""
    if as_markdown:
        print("\n\n".join(["  \n".join(lines), *map(markdown, tables)]))
        return
    from jobs.console.output import console

    out = console()
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    for table in tables:
        for part in fitting(table, out.width):
            out.print(_drawn(part))


def fitting(table: Table, width: int) -> list[Table]:
    """A table as one or more of at most so many characters a line, if their columns allow: each begins with the names.

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


def markdown(table: Table) -> str:
    """A table as Markdown, under its title."""
    heads = [_line(table.heads), "|---" * table.names + "|---:" * (len(table.heads) - table.names) + "|"]
    return "\n".join([f"**{_plain(table.title)}**", "", *heads, *map(_line, table.rows)])


def with_error(estimate: Estimate, scale: float = 1.0) -> str:
    """A mean with its standard error, where there is one."""
    if not estimate.questions:
        return NOTHING
    digits = 3 if scale == 1.0 else 2
    error = "" if estimate.error is None else f" ± {scale * estimate.error:.{digits}f}"
    return f"{scale * estimate.mean:.{digits}f}{error}"


def with_interval(estimate: Estimate, scale: float = 1.0) -> str:
    """A mean with its standard error and its interval."""
    if estimate.low is None or estimate.high is None:
        return with_error(estimate, scale)
    return f"{with_error(estimate, scale)} [{scale * estimate.low:.2f}, {scale * estimate.high:.2f}]"


def difference(pair: Pair, scale: float = 1.0) -> str:
    """A pair's difference with its sign and interval."""
    found = pair.difference
    if not found.questions:
        return NOTHING
    low, high = found.low, found.high
    interval = "" if low is None or high is None else f" [{scale * low:+.3f}, {scale * high:+.3f}]"
    return f"{scale * found.mean:+.3f}{interval}"


def p_text(p: float | None) -> str:
    """A p-value as papers write it."""
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def scale_of(scoring: Scoring) -> float:
    """What scores are multiplied by to be shown: those of a judge as it gave them, 0 to 3."""
    return BEST_JUDGED if scoring == "judge" else 1.0


def _columns(table: Table, title: str, columns: Sequence[int]) -> Table:
    heads, *rows = (tuple(row[each] for each in columns) for row in (table.heads, *table.rows))
    return Table(title, heads, tuple(rows), table.names)


def _drawn(table: Table) -> Drawn:
    from rich import box
    from rich.markup import escape
    from rich.table import Table as Drawn

    drawn = Drawn(
        box=box.SIMPLE_HEAD, title=escape(table.title), title_justify="left", pad_edge=False, collapse_padding=True
    )
    for number, head in enumerate(table.heads):
        is_name = number < table.names
        drawn.add_column(escape(head), justify="left" if is_name else "right", overflow="fold", no_wrap=not is_name)
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
