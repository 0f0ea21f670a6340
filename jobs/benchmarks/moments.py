"""Samples of benchmarks whose answers are ranges of time: a text or picture to search for, and the moments it means.

No search and no agent may see anything of a sample but its text, its image and its video: see `MomentSample.query`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from jobs.benchmarks.samples import AddNote, BadRow, Problem, Raw, parse_rows

Range = tuple[str, float, float]
"""A moment: the benchmark's name of its video, and a half-open range in the seconds that a player shows."""


@dataclass(frozen=True, slots=True)
class MomentQuery:
    """All of a sample that a search may see: `text` may be empty where there is an `image`; no `video`: all videos."""

    text: str
    video: str | None
    image: Path | None


@dataclass(frozen=True, slots=True)
class MomentSample:
    """One text to search for and, apart from it, the true moments. Videos have the benchmark's own names.

    `relevant` is empty where the moments are not published, and where there are none: then `absent` is true.
    `grades` has the worth of each relevant moment, more than 0, None where all are worth the same.
    `duration_s` is the length of `video` as the benchmark publishes it, None where it does not.
    """

    sample_id: str
    benchmark: str
    text: str
    video: str | None
    relevant: tuple[Range, ...]
    grades: tuple[float, ...] | None = None
    image: Path | None = None
    absent: bool = False
    category: str | None = None
    duration_s: float | None = None

    @property
    def query(self) -> MomentQuery:
        """The part of the sample that a search may see."""
        return MomentQuery(self.text, self.video, self.image)

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the moments, or that there are none."""
        return self.absent or bool(self.relevant)

    @property
    def videos(self) -> tuple[str, ...]:
        """The names of all videos of the sample: the searched one and those of the moments, each once."""
        names = (self.video, *(video for video, _, _ in self.relevant))
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, slots=True)
class MomentBenchmark:
    """A benchmark of moments: its samples in the file's order, and the defects of the file, by row."""

    name: str
    title: str
    samples: tuple[MomentSample, ...]
    problems: tuple[Problem, ...] = ()


ParsedMoments = tuple[tuple[MomentSample, ...], tuple[Problem, ...]]
Row = TypeVar("Row", bound=BaseModel)


def parse_moments(
    rows: Iterable[Raw], shape: type[Row], to_item: Callable[[Row, AddNote], MomentSample]
) -> ParsedMoments:
    """Parse the rows of the published shape into samples, in their order, and note the problems of the others.

    A second row of an id is left out, and so is one without words and without a picture.
    """

    def to_sample(row: Row, note: AddNote) -> MomentSample:
        sample = to_item(row, note)
        if not sample.text and sample.image is None:
            raise BadRow("got neither words nor a picture to search for")
        return sample

    return parse_rows(rows, shape, to_sample, lambda sample: sample.sample_id)


def is_there(picture: Path) -> bool:
    """True if the file of a picture is there; False too for a name that no file can have."""
    try:
        return picture.is_file()
    except (OSError, ValueError):  # too long, half a character
        return False


def check_range(field: str, start_s: float, end_s: float) -> tuple[float, float]:
    """Return the range; raise `BadRow` with the field's name unless it begins at 0 or later, and ends after that."""
    if not 0 <= start_s < end_s:
        raise BadRow(f"{field}: got {start_s:g} to {end_s:g}; it is a start from 0 on and a later end in seconds")
    return start_s, end_s
