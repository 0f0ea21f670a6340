"""Texts written to a file or to standard output, and never over something by mistake."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import uuid4

from kinodex.index.terminal_text import visible_lines
from kinodex.jobs.errors import UsageError

STANDARD_OUTPUT = "-"


def write_text(out: str, text: str, overwrite: bool = False) -> None:
    """Write `text` in UTF-8 to the file `out`, whole or not at all, over another only with `overwrite`; "-" prints."""
    if out == STANDARD_OUTPUT:
        sys.stdout.write(visible_lines(text) if sys.stdout.isatty() else text)
        return
    path = Path(out)
    check_free(path, overwrite)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}; give another file") from error


def check_free(path: Path, overwrite: bool) -> None:
    """Raise UsageError for a folder, and for a file that is there unless it may be overwritten."""
    if path.is_dir():
        raise UsageError(f"got {path}, which is a folder; give a file, or - for standard output")
    if path.exists() and not overwrite:
        raise UsageError(f"got {path}, which is there already; give another file, or --overwrite")
