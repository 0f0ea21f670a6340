"""Output of commands: consoles, tables and progress lines for people, JSON for programs."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

from kinodex.index.terminal_text import visible, visible_lines
from kinodex.redaction import redact_values

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 180
CONTROL = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What JSON leaves in its texts and a terminal may obey."""
LINE_EVERY_S = 30.0


def console() -> Console:
    """Standard output for people; wide where it is no terminal, so that a pipe gets whole lines."""
    from kinodex.terminal import Terminal

    out = Terminal(highlight=False, emoji=False)  # else a title loses `:b:` to a picture
    return out if out.is_terminal else Terminal(highlight=False, emoji=False, width=WIDE)


def error_console(quiet: bool = False) -> Console:
    """Standard error for people: progress, which a pipe does not get."""
    from kinodex.terminal import Terminal

    return Terminal(stderr=True, quiet=quiet, emoji=False)


class Visible(logging.Formatter):
    """Lines of a log without what could steer a terminal, or a secret."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return visible_lines(super().format(record))


@contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Print within this block what is logged of a run that goes on: what is exported, missing, or tried again."""
    logger, handler = logging.getLogger("kinodex"), logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(Visible())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def print_every(console: Console, every_s: float = LINE_EVERY_S) -> Callable[[Callable[[float], str]], None]:
    """Make a function that prints a line if `every_s` went by since the last one, for output that is no terminal.

    It gets a function from the seconds since the beginning to the line, called only when the line is printed.
    """
    began = shown = time.monotonic()

    def offer(line: Callable[[float], str]) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= every_s:
            shown = now
            console.print(line(now - began), soft_wrap=True, markup=False, highlight=False)

    return offer


def say(lines: object = "") -> None:
    """Print lines on standard output; whatever is in them cannot steer the terminal, and shows no secret."""
    print(visible_lines(str(lines)), flush=True)


def tell(lines: str) -> None:
    """Print lines on standard error at once, as `say` does; where it takes none, the exit code still says what was."""
    with suppress(OSError):
        print(visible_lines(lines), file=sys.stderr, flush=True)


def tell_step(step: str) -> None:
    """Name the step that begins, on standard error."""
    tell(f"{step} ...")


def tell_count(text: str) -> None:
    """Show how far a run is on a terminal, in the place of what was shown before."""
    print(f"\r{visible(text)}", end="", file=sys.stderr, flush=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON document, without secrets; what JSON has no type for (times, paths) as text."""
    text = json.dumps(redact_values(value), default=_plain_value, ensure_ascii=not is_utf8(sys.stdout), indent=indent)
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def _plain_value(value: Any) -> Any:
    """Return a number for a decimal, as which SQL gives sums of whole numbers, and text for the rest."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def plain_table(*columns: str) -> Table:
    """Return a table without lines; columns of numbers are set to the right."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        right = name in ("frames", "score", "cosine", "bm25", "at", "length", "seconds", "part", "took")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    return table


def is_utf8(stream: TextIO) -> bool:
    """Return True for a stream that can write any text."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") in ("utf8", "utf8sig")


def open_closed_streams() -> None:
    """Point standard streams that were closed (`>&-`) to nowhere: the next file would take the place of one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def write_any_text(*streams: TextIO) -> None:
    """Have streams write what their encoding lacks as escapes: a locale without UTF-8 is no reason to fail."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not is_utf8(stream)):
            stream.reconfigure(errors="backslashreplace")
