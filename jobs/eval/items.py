"""The items of benchmarks.

An item is a question or a search and, apart from it, its target, which no agent may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from kinodex.agent.protocol.question import Question

Scoring = Literal["options", "judge"]
"""The way an answer is scored: 0 or 1 by the chosen option, or 0 to 3 by a judge model."""


@dataclass(frozen=True, slots=True)
class Target:
    """The true answer: the index of the right option, or a text where there are no options; None if not published.

    `evidence` are half-open ranges in seconds, in the time of `clip`, the one video of several that the benchmark
    names, else of the item's video. `clip_s` is the range of the true clip where that is a part of `clip`, an episode.
    """

    option: int | None = None
    text: str | None = None
    evidence: tuple[tuple[float, float], ...] = ()
    clip: str | None = None
    clip_s: tuple[float, float] | None = None

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the answer."""
        return self.option is not None or self.text is not None


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark with its target. `video` is the benchmark's own name of a video, or of an episode.

    `groups` are the categories it counts in, by breakdown: {"question_type": ("summarization", "reasoning")}.
    """

    item_id: str
    video: str
    question: Question
    truth: Target
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


Range = tuple[str, float, float]
"""A moment: the benchmark's name of its video, and a half-open range in the seconds that a player shows."""


@dataclass(frozen=True, slots=True)
class MomentQuery:
    """All of an item that a search may see: `text` may be empty where there is an `image`; no `video`: all videos."""

    text: str
    video: str | None
    image: Path | None


@dataclass(frozen=True, slots=True)
class SearchItem:
    """One text to search for and, apart from it, the true moments. Videos have the benchmark's own names.

    `relevant` is empty where the moments are not published, and where there are none: then `absent` is true.
    `grades` has the worth of each relevant moment, more than 0, None where all are worth the same.
    """

    item_id: str
    benchmark: str
    text: str
    video: str | None
    relevant: tuple[Range, ...]
    grades: tuple[float, ...] | None = None
    image: Path | None = None
    absent: bool = False
    category: str | None = None
    duration_s: float | None = None

    def __post_init__(self) -> None:
        if not self.text and self.image is None:
            raise BadRow("got neither words nor a picture to search for")

    @property
    def query(self) -> MomentQuery:
        """The part of the item that a search may see."""
        return MomentQuery(self.text, self.video, self.image)

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the moments, or that there are none."""
        return self.absent or bool(self.relevant)

    @property
    def videos(self) -> tuple[str, ...]:
        """The names of all videos of the item: the searched one and those of the moments, each once."""
        names = (self.video, *(video for video, _, _ in self.relevant))
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, slots=True)
class Problem:
    """A defect of an annotation file: where ("row 17", "file"), and what it is."""

    where: str
    what: str


class BadRow(ValueError):
    """A row that cannot be a question. The reader of its file makes a `Problem` of it."""


class HasId(Protocol):
    @property
    def item_id(self) -> str: ...


AnyItem = TypeVar("AnyItem", bound=HasId)


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[AnyItem]):
    """A benchmark: its items in the file's order, and the defects of the file, of rows left out and of rows kept.

    `episodes`: the video of a question may be several videos of a library, whose names begin with it.
    """

    name: str
    title: str
    items: tuple[AnyItem, ...]
    problems: tuple[Problem, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False


MomentBenchmark = Benchmark[SearchItem]
