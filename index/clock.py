"""The two clocks of a video: presentation time, and the time that a player shows.

A library and all that is read from it are in presentation time, the timestamps of the file. People, subtitle files and
benchmarks give the time that a player shows, which is 0:00 at the beginning. Whatever comes from them passes through
here, and nowhere else is one turned into the other.

A transport or program stream counts from an arbitrary time, and players take its beginning for 0:00. Other containers
count from 0, and a picture that begins at 1.1 s is shown at 1.1 s; but one that begins minutes late was cut out of a
longer file with its timestamps kept, and is counted from its beginning too.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

ARBITRARY_SUFFIXES = frozenset({".ts", ".m2ts", ".mts", ".m2t", ".mpg", ".mpeg", ".vob", ".m2p", ".tod", ".mod"})
"""Endings of files whose timestamps begin anywhere."""
LATE_START_S = 10.0
"""No encoder delays a picture by so much; a video that begins later was cut with its timestamps kept."""


class Timed(Protocol):
    """A video with its place and the presentation time of its beginning, such as an `index.rows.VideoRow`."""

    @property
    def uri(self) -> str: ...
    @property
    def start_s(self) -> float: ...


@runtime_checkable
class Zeroed(Protocol):
    """A video that carries its zero, such as an agent's `Video`, which has no place."""

    @property
    def zero_s(self) -> float: ...


def zero_s(video: Timed | Zeroed) -> float:
    """Presentation time in seconds of what a player shows as 0:00."""
    if isinstance(video, Zeroed):
        return video.zero_s
    suffix = PurePosixPath(urlsplit(video.uri).path).suffix.lower()
    return video.start_s if suffix in ARBITRARY_SUFFIXES or video.start_s >= LATE_START_S else 0.0


def presentation_s(video: Timed | Zeroed, player_s: float) -> float:
    """Presentation time in seconds of a time that a player shows."""
    return zero_s(video) + player_s


def player_s(video: Timed | Zeroed, presentation_s: float) -> float:
    """Time in seconds that a player shows at a presentation time."""
    return presentation_s - zero_s(video)
