"""Settings of an export for Hugging Face `datasets`, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from kinodex.jobs.errors import UsageError

Precision = Literal["float16", "float32", "none"]
"""Numbers of the vectors; "none" leaves them out."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def checked_precision(name: str) -> Precision:
    """Check the name of a precision; raises UsageError."""
    for known in PRECISIONS:
        if name == known:
            return known
    raise UsageError(f"got vectors {name!r}; give {', '.join(PRECISIONS)}")


@dataclass(frozen=True, slots=True)
class HfSettings:
    """Settings of an export."""

    vectors: Precision = "float16"
    shard_frames: int = 10_000
    """A file holds whole videos of together at most this many frames, or one longer video."""
    split: str = "train"

    def __post_init__(self) -> None:
        if self.shard_frames < 1:
            raise UsageError(f"got {self.shard_frames} frames a file; give 1 or more")
        if not self.split.replace("_", "").isalnum() or not self.split.isascii():
            raise UsageError(f"got split {self.split!r}; give a name of letters, digits and _, such as train")


class HfReport(NamedTuple):
    """Result of an export."""

    videos: int
    frames: int
    files: int
    stored_bytes: int
    files_before: int
    """Files that an earlier run had written."""
