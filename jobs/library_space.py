"""The spaces that a library holds, loaded so that what is embedded can be compared with what is stored."""

from __future__ import annotations

from typing import Literal

from index.errors import SpaceMismatch
from index.library import Library
from index.spaces import Fingerprint, Space
from jobs.errors import UsageError


def held_space(library: Library, wanted: str | None) -> Fingerprint:
    """One of the library's spaces by name or digest, None being its own; raises UsageError if it is none of them."""
    try:
        return library.space(wanted)
    except SpaceMismatch as error:
        raise UsageError(str(error)) from error


def library_space(library: Library, wanted: str | None, towers: Literal["image", "text"]) -> Space:
    """A tower of the library's own space, or of another that it holds, by name or digest.

    Raises UsageError if the library lacks it, SpaceMismatch if its name stands for other weights here, or a SpaceError.
    """
    held_space(library, wanted)
    return library.load_space(wanted, towers)
