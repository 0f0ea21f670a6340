"""What an optional stage is, and what it says of its work."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from agent.core.protocol import Usage
from index.library import Library
from index.rows import VideoRow
from jobs.errors import UsageError

NO_COST = Usage()


@dataclass(frozen=True, slots=True)
class Made:
    """What a stage made of one video, before it is written; `problem` says what of it could not be made."""

    rows: Any
    count: int
    problem: str | None = None
    usage: Usage = NO_COST


RowsOf = Callable[[Library, VideoRow], Made]
T = TypeVar("T")


class Stage(Protocol):
    """The settings of an optional stage and the work that they ask for; frozen, and small enough to be sent.

    Models are loaded when they are first needed and kept for the process.
    """

    @property
    def name(self) -> str:
        """captions, detections, speech or vectors."""

    @property
    def model(self) -> str:
        """What a library calls the model in rows and additions: the same name, the same rows."""

    @property
    def device(self) -> str:
        """Where its model is to run: auto, cpu, cuda, ..."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the rows depend on, as JSON can hold it; kept with every addition."""

    def prepare(self, library: Library) -> None:
        """Load what rows are made with, and make room for them; raises what makes the whole run senseless."""

    def rows_of(self, library: Library, video: VideoRow) -> Made:
        """The rows of one video; raises a PipelineError or `ModelRejected` if they cannot be had."""

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos."""


@runtime_checkable
class SideBySide(Protocol):
    """A stage that works on several videos together, because it waits for others more than it computes."""

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """What `work` makes of each video with the function that it is given, in their order. Close it at the end."""

    def share(self, processes: int) -> Stage:
        """The stage for each of several processes that do its work together."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one video: `rows` written, or `error_class` and `problem` saying why there are none.

    A video that was added with a `problem` is complete but for it.
    """

    video_id: str
    uri: str
    title: str
    rows: int = 0
    problem: str | None = None
    error_class: str | None = None
    usage: Usage = NO_COST

    @property
    def is_failed(self) -> bool:
        return self.error_class is not None


@dataclass(frozen=True, slots=True)
class AddReport:
    """What a run added, video by video, and the seconds it took."""

    stage: str
    model: str
    outcomes: Sequence[Added]
    seconds: float

    @property
    def added(self) -> int:
        return sum(not outcome.is_failed for outcome in self.outcomes)

    @property
    def failed(self) -> int:
        return len(self.outcomes) - self.added

    @property
    def rows(self) -> int:
        return sum(outcome.rows for outcome in self.outcomes)

    @property
    def usage(self) -> Usage:
        return sum((outcome.usage for outcome in self.outcomes), NO_COST)


def check_settings(library: Library, stage: Stage, *names: str) -> None:
    """Raise `UsageError` where these settings are others than those that the model added the stage with before.

    Readers know rows by their model alone: what goes by one name has to be made in one way.
    """
    held = library.added_settings(stage.name, stage.model)
    changed = [name for name in names if name in held and held[name] != stage.settings.get(name)]
    if changed:
        raise UsageError(
            f"got {_options(stage.settings, changed)}, but {library.uri} holds {stage.name} by {stage.model} made with "
            f"{_options(held, changed)}; give that again, or first take out what is there: "
            f"kinodex remove added {shlex.quote(library.uri)} {stage.name} {shlex.quote(stage.model)}"
        )


def _options(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """Settings as they are given on the command line."""
    options = {name: f"--{name.replace('_', '-')}" for name in names}
    told = [f"no {options[name]}" if settings[name] is None else f"{options[name]} {settings[name]}" for name in names]
    return " ".join(told)


def hub_for(model: str) -> AbstractContextManager[bool]:
    """What to load a model in: where the hub may be asked for it, the hub or its cache answers soon."""
    from index.embedding.hub import quick_hub

    return nullcontext(False) if Path(model).expanduser().is_dir() else quick_hub()
