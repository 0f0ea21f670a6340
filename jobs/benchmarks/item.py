"""What every benchmark is read into. What is true of a question stands apart from it, and no agent is given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.core.question import Question

Scoring = Literal["options", "judge"]
"""How an answer is scored: by the option that it chose, 0 or 1, or by a judging model, 0 to 3."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true: the index of the right option, or a text where there are no options; None where nobody tells.

    `evidence` are the half-open ranges in seconds that show it, in the time of `clip` where the benchmark names the one
    video of several that they lie in, else of the item's video.
    """

    option: int | None = None
    text: str | None = None
    evidence: tuple[tuple[float, float], ...] = ()
    clip: str | None = None

    @property
    def known(self) -> bool:
        return self.option is not None or self.text is not None


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark. `video` is the benchmark's own name of a video, or of an episode of several.

    `groups` are the categories it counts in, by breakdown: {"question_type": ("summarization", "reasoning")}.
    `duration_s` is what the benchmark says of the video's length, None where it says nothing.
    """

    item_id: str
    video: str
    question: Question
    truth: Truth
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing or malformed in an annotation file: where ("row 17", "file"), and what."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark as read: its items in the file's order, and what was wrong with the file, by row.

    A row that cannot be asked is left out; one that can is kept and noted, such as one with two options of one text.

    `episodes`: an item's video may be several videos of a library, whose names begin with it.
    """

    name: str
    title: str
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False
