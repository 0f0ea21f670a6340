"""Checks of this machine for `kinodex doctor`: each part is really tried, as far as that costs seconds.

One module for each section of the page; `checks` runs them all. May import every room, and of jobs only `bench` (to try
a decoder in a process of its own) and `synthetic` (to draw the film for it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the doctor's page.

    `missing` can be installed or configured; `broken` is there and does not work; `todo` says what to do about either.
    `name` is what `--need` takes.
    """

    section: str
    name: str
    state: Literal["ok", "missing", "broken"]
    said: str
    todo: str = ""
