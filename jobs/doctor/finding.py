"""One line of the doctor's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    `missing` can be had, `broken` is there and does not work; `todo` says what to do about either. `name` is what
    `--need` takes, for a thing that somebody may need.
    """

    section: str
    name: str
    state: Literal["ok", "missing", "broken"]
    said: str
    todo: str = ""
