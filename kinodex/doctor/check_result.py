"""Results of checks by `kinodex doctor`, each a line of its page."""

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
