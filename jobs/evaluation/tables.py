"""Tables of figures: for people at a terminal, and as Markdown for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.benchmarks.item import Scoring
from jobs.evaluation.report import Estimate, Pair
from jobs.evaluation.scoring import BEST_JUDGED

if TYPE_CHECKING:
    from rich.table import Table as Drawn

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, and rows of cells; the first column is a name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def print_all(lines: Sequence[str], tables: Sequence[Table], as_markdown: bool) -> None:
    """Print lines of text and then tables on stdout: drawn for people, or as Markdown."""
    if as_markdown:
        print("\n\n".join(["  \n".join(lines), *map(markdown, tables)]))
        return
    from jobs.show import console

    out = console()
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    for table in tables:
        out.print(_drawn(table))


def markdown(table: Table) -> str:
    """A table as Markdown, under its title."""
    heads = [_line(table.heads), "|---" + "|---:" * (len(table.heads) - 1) + "|"]
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


def _drawn(table: Table) -> Drawn:
    from rich import box
    from rich.markup import escape
    from rich.table import Table as Drawn

    drawn = Drawn(
        box=box.SIMPLE_HEAD, title=escape(table.title), title_justify="left", pad_edge=False, collapse_padding=True
    )
    for number, head in enumerate(table.heads):
        drawn.add_column(escape(head), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
