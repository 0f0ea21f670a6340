"""Protocol of an optional stage, and the types of its results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from agent.core.protocol import Usage
from index.embedding.embedders import joined_arithmetic
from index.library import Library
from index.rows import VideoRow
from jobs.errors import UsageError

NO_COST = Usage()
CONTENT = "content"
"""Name of the digest of a model's files among the settings that are kept."""


@dataclass(frozen=True, slots=True)
class StageRows:
    """Rows of one video from a stage, before they are written; `problem` says which of them are missing.

    `count` is the number of rows that the video then has: these, and those that stay of an earlier run. `failed` says
    why there are none, although `usage` was spent. `arithmetic` says which one made vectors, as an embedder of pictures
    says it.
    """

    rows: Any
    count: int
    problem: str | None = None
    usage: Usage = NO_COST
    arithmetic: str = ""
    failed: Exception | None = None


RowsOf = Callable[[Library, VideoRow], StageRows]
T = TypeVar("T")


class Stage(Protocol):
    """Settings of an optional stage and its work; frozen, and small enough to be sent.

    Models are loaded when they are first needed and kept for the process.
    """

    @property
    def name(self) -> str:
        """One of `index.store.schema.STAGES`."""

    @property
    def model(self) -> str:
        """The model's name in rows and additions: the same name, the same rows."""

    @property
    def device(self) -> str:
        """The device of the model: auto, cpu, cuda, ..."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the rows depend on, as JSON can hold them; stored with every addition."""

    def prepare(self, library: Library) -> None:
        """Load the models and prepare the library's tables; raises errors that would end the whole run."""

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        """Make the rows of one video; raises a PipelineError or `ModelRejected` if that fails."""

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos."""


@runtime_checkable
class ConcurrentStage(Protocol):
    """Stage that works on several videos together, because it waits for an endpoint more than it computes."""

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """Apply `work` to each video, with the function that makes its rows; yields the results in order.

        Close the generator at the end.
        """

    def share(self, processes: int) -> Stage:
        """Make the stage for each of several processes that share its work."""


@dataclass(frozen=True, slots=True)
class VideoOutcome:
    """Outcome of one video: `rows` written, or `error_class` and `problem` saying why there are none.

    A video that was added with a `problem` is complete but for it.
    """

    video_id: str
    uri: str
    title: str
    rows: int = 0
    problem: str | None = None
    error_class: str | None = None
    usage: Usage = NO_COST
    arithmetic: str = ""

    @property
    def is_failed(self) -> bool:
        return self.error_class is not None


@dataclass(frozen=True, slots=True)
class AddReport:
    """Report of a run: its outcomes video by video, and the seconds it took."""

    stage: str
    model: str
    outcomes: Sequence[VideoOutcome]
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

    @property
    def arithmetic(self) -> str:
        """Every arithmetic that made vectors; empty for other stages."""
        return joined_arithmetic(outcome.arithmetic for outcome in self.outcomes)


def check_settings(library: Library, stage: Stage, *names: str) -> None:
    """Check that these settings are those with which the model added the stage before, else raise `UsageError`.

    Readers know rows by their model alone: rows of one name have to be made in one way.
    """
    stored = library.additions.settings(stage.name, stage.model)
    remedy = f"kinodex remove added {shlex.quote(library.uri)} {stage.name} {shlex.quote(stage.model)}"
    if CONTENT in stored and stored[CONTENT] != kept_settings(stage).get(CONTENT, stored[CONTENT]):
        raise UsageError(
            f"the files of {stage.model} are others than those that made {stage.name} in {library.uri}; give the model "
            f"that made them, or first take out what is there: {remedy}"
        )
    changed = [name for name in names if name in stored and stored[name] != stage.settings.get(name)]
    if changed:
        raise UsageError(
            f"got {_options(stage.settings, changed)}, but {library.uri} holds {stage.name} by {stage.model} made with "
            f"{_options(stored, changed)}; give that again, or first take out what is there: {remedy}"
        )


def kept_settings(stage: Stage) -> Mapping[str, Any]:
    """Settings that are kept with a stage's rows: its own, and a digest of its model's files where they lie here."""
    from jobs.model_choice import content_digest

    settings = stage.settings
    place = Path(settings.get("detector", stage.model)).expanduser()
    is_here = not settings.get("base_url") and place.is_dir()
    return {**settings, CONTENT: content_digest(place)} if is_here else settings


def _options(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """Settings as options of the command line."""
    options = {name: f"--{name.replace('_', '-')}" for name in names}
    return " ".join(_option(options[name], settings[name]) for name in names)


def _option(option: str, value: Any) -> str:
    if isinstance(value, bool):
        return option if value else option.replace("--", "--no-", 1)
    return f"no {option}" if value is None else f"{option} {value}"


def hub_for(model: str) -> AbstractContextManager[bool]:
    """Context to load a model in: for a model of a hub, requests that fail fall back to its cache quickly."""
    from index.embedding.model_source import quick_hub

    return nullcontext(False) if Path(model).expanduser().is_dir() else quick_hub()
