"""A source that grows, and the rows that readers see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kinodex.index.rows import VideoRow
from kinodex.pipeline.filesystems import is_remote
from kinodex.redaction import redact_uri


@dataclass(frozen=True, slots=True)
class LiveSource:
    """A source that grows: a file, an HLS playlist's address or an RTSP address; its user and password stay in here.

    Its `name` is how parts are called and found again. Rows appear every `flush_s` seconds; nothing for `stall_s`
    seconds is a stall; a part lasts at most `part_s`.
    """

    address: str = field(repr=False)
    name: str = ""
    flush_s: float = 3.0
    stall_s: float = 15.0
    part_s: float = 3600.0

    @property
    def uri(self) -> str:
        """The address without what grants access to it."""
        return redact_uri(self.address) if is_remote(self.address) else str(Path(self.address).absolute())

    @property
    def called(self) -> str:
        return self.name or (self.uri if is_remote(self.address) else Path(self.address).name)

    @property
    def is_file(self) -> bool:
        return not is_remote(self.address)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows that readers see now: `frames` new ones of a part, up to its end, and the part's columns."""

    video: VideoRow
    columns: Mapping[str, Any]
    frames: int
    is_first: bool
    """The part begins with them; its column `gap_s` is the seconds missing before it, None of a source's first."""
    notices: Sequence[dict[str, Any]] = ()
