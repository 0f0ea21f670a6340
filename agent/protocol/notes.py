"""Notes: findings about times of videos in words, and entries of a search's log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.index.kinds import KINDS, LINE_KINDS, Kind


@dataclass(frozen=True, slots=True)
class Note:
    """A finding about [start_s, end_s) of a video, in words; `source` is the tool or table that it is from.

    `confidence` is 0 to 1, None if it has none. A look that `failed` found nothing out: its note says why, and is no
    evidence for anything.
    """

    video_id: str
    start_s: float
    end_s: float
    source: str
    text: str
    confidence: float | None = None
    failed: bool = False

    def __post_init__(self) -> None:
        # A line of a quotation must not look like a line of the prompt that quotes it.
        object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def quoted(self) -> str:
        """The name of its source where a prompt quotes it: the words screen text for `screen_text`."""
        kind = KINDS.get(self.source)
        return self.source if kind is None else kind.quote


def by_kind(notes: Sequence[Note]) -> list[tuple[Kind, list[Note]]]:
    """Group notes that quote lines by their kind, in the order of `LINE_KINDS`."""
    groups = [(KINDS[kind], [note for note in notes if note.source == kind]) for kind in LINE_KINDS]
    return [(kind, lines) for kind, lines in groups if lines]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Finding of a model in a frame, in one line, once it had seen `after` frames; it stays when the frame leaves.

    `frame` is the number of the frame, 0 for a line that was read. `supports` and `excludes` are letters of options.
    An entry is never changed, and its place is after those frames,
    so that a prompt with it only grows.
    """

    frame: int
    video_id: str
    time_s: float
    text: str
    after: int
    supports: str = ""
    excludes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def line(self) -> str:
        sides = (("supports", self.supports), ("excludes", self.excludes))
        said = "".join(f"; {side} {', '.join(letters)}" for side, letters in sides if letters)
        what = f"frame {self.frame} " if self.frame else ""
        return f"log: {what}at {self.time_s:.2f} s: {self.text}{said}"
