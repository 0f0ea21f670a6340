"""Texts in tables that a spreadsheet would take for formulas: marked when written, and read back as they were."""

from __future__ import annotations

import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginnings of a text that a spreadsheet would compute, or that already stands behind an apostrophe for that."""


def plain_cell(value: object) -> object:
    """Return a value as a cell of CSV.

    A text that a spreadsheet would take for a formula stands behind an apostrophe.
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def own_text(value: object) -> object:
    """Return the text of a cell that `plain_cell` wrote."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and FORMULA.match(value[1:]) else value
