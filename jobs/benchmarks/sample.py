"""Samples of a benchmark: a question and, apart from it, its target, which no agent may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.core.question import Question

Scoring = Literal["options", "judge"]
"""The way an answer is scored: 0 or 1 by the chosen option, or 0 to 3 by a judge model."""


@dataclass(frozen=True, slots=True)
class Target:
    """The true answer: the index of the right option, or a text where there are no options; None if not published.

    `evidence` are the half-open ranges in seconds that show it, in the time of `clip` where the benchmark names the one
    video of several that they lie in, else of the sample's video.
    """

    option: int | None = None
    text: str | None = None
    evidence: tuple[tuple[float, float], ...] = ()
    clip: str | None = None

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the answer."""
        return self.option is not None or self.text is not None


@dataclass(frozen=True, slots=True)
class Sample:
    """One question of a benchmark with its target. `video` is the benchmark's own name of a video, or of an episode.

    `groups` are the categories it counts in, by breakdown: {"question_type": ("summarization", "reasoning")}.
    `duration_s` is the video's length as the benchmark publishes it, None where it does not.
    """

    item_id: str
    video: str
    question: Question
    truth: Target
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A defect of an annotation file: where ("row 17", "file"), and what it is."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A video of a benchmark that the library lacks, the reason, and the number of its questions, all left out."""

    video: str
    why: str
    questions: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its samples in the file's order, and the defects of the file, by row.

    A row that cannot be asked is left out; one that can is kept and noted, such as one with two options of one text.

    `episodes`: the video of a sample may be several videos of a library, whose names begin with it.
    """

    name: str
    title: str
    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False
