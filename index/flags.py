"""Flags of fields: what help, schemas and pages say about a field of a request or of settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Flag:
    """The help of a field, and its option on the command line. It stands in the field's `Annotated` type.

    A command, a tool of MCP, a body of HTTP and the documentation are made from fields with their flags:

        k: Annotated[int, Flag("Number of hits.", "-k")] = 10
    """

    help: str
    name: str | None = None
    """The option's spelling where it is not the field's name: "-k", "--from"."""
    metavar: str | None = None
    is_argument: bool = False
    """The command takes it by its place and not by an option."""
    is_rare: bool = False
    """`--help` lists it under "More"."""
    is_local: bool = False
    """It names a file or an address, so clients of a server cannot give it."""
    parse: Callable[[str], Any] | None = None
    """How the command line reads it, where its type does not say it."""


def flag_of(metadata: tuple[Any, ...] | list[Any]) -> Flag | None:
    """Return the flag among the metadata of an `Annotated` type, or None."""
    return next((each for each in metadata if isinstance(each, Flag)), None)
