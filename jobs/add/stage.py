"""A stage: something that is added to the videos of a library, declared by its settings.

A field with a `Flag` is an option of `kinodex add NAME`; all fields are arguments of `Library.add(NAME, ...)`. What the
settings say is done by its `work`, which is opened with the models that it needs:

    class Bright(Stage):  # its docstring is the help
        name = "detections"
        work = BrightFrames
        least: Annotated[int, Flag("Least brightness, 0 to 255.")] = Field(default=100, ge=0, le=255)

    class BrightFrames(StageWork[Bright]):
        def rows_of(self, video): ...
        def write(self, rows): ...

A stage of one's own registers under the entry point group `kinodex.stages` (`kinodex.jobs.add.stages`).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kinodex.index.flags import Flag, flag_of
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.add.run import AddedRows, Addition
    from kinodex.jobs.costs import Forecast


S = TypeVar("S", bound="Stage")
CONTENT = "content"
"""Name of the digest of a model's files among the settings that are kept."""
HERE_AT_ONCE, SERVED_AT_ONCE = 4, 32
"""Parts of videos that a model here, and one behind an endpoint, is given together."""
NOT_STORED = {"device", "batch", "batch_api", "stop_at_cost", "retry_failed", "renew", "replace", "send", "asked_as"}
"""Settings that the rows do not depend on."""


def local_name(model: str) -> str:
    """Resolve a folder to its whole path, so that it is one model from any working directory; keep a hub id."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def endpoint_of(model: str) -> str | None:
    """Return the endpoint that serves a model where none is named: that of `ask`, unless it is a folder or a hub id.

    >>> endpoint_of("gpt-4o"), endpoint_of("Qwen/Qwen2.5-VL-3B-Instruct")
    ('https://api.openai.com/v1', None)
    """
    from kinodex.agent.models.roles import default_base_url
    from kinodex.jobs.models import LOCAL

    is_here = "/" in model or model.startswith(LOCAL) or Path(model).expanduser().is_dir()
    return None if is_here else default_base_url()


LocalModel = Annotated[
    str, AfterValidator(local_name), Flag("A model of transformers: a hub id or a local folder.", "--model")
]
Device = Annotated[str, Flag("Where the model runs: auto, cpu, cuda.")]
InputPrice = Annotated[float, Flag("Money for a million input tokens.", is_rare=True)]


class Stage(BaseModel):
    """Settings of something that is added to videos; the docstring is the help of its command."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

    name: ClassVar[str]
    """Where its rows are kept: one of `kinodex.index.store.schema.STAGES`."""
    work: ClassVar[str | type[Any]] = ""
    """The class that does it, a `StageWork`, or where that is: MODULE:CLASS."""
    unit: ClassVar[str] = "rows"
    """What is counted where its costs are forecast."""
    frames_needed: ClassVar[bool] = True
    """False if videos that were imported as text get it too."""
    in_common: ClassVar[tuple[str, ...]] = ()
    """Settings that all rows of one model have in common: others are refused."""
    is_forecast: ClassVar[bool] = False
    """True if what it costs can be told before anything is asked."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the rows depend on, as JSON can hold them; stored with every addition."""
        return self.model_dump(mode="json", exclude=NOT_STORED)

    @property
    def key(self) -> str | None:
        """The model's name in rows and additions: the same name, the same rows; None if the model itself says it.

        Without a model it is the name of the class.
        """
        return str(getattr(self, "model", type(self).__name__))

    @property
    def fixed(self) -> Sequence[str]:
        """Settings that all rows of one model have in common."""
        return self.in_common

    @cached_property
    def kept(self) -> Mapping[str, Any]:
        """Settings that are kept with the rows: these, and a digest of the model's files where they lie here."""
        from kinodex.jobs.models import content_digest

        place = Path(str(getattr(self, "model", ""))).expanduser()
        is_here = self.key is not None and not self.settings.get("base_url") and place.name and place.is_dir()
        return {**self.settings, CONTENT: content_digest(place)} if is_here else self.settings

    @property
    def runs_on(self) -> str:
        """The device of the model."""
        return str(getattr(self, "device", "cpu"))

    @contextmanager
    def open(self, library: Library) -> Iterator[Addition]:
        """Load the models, which are let go of at the end; raises errors that would end the whole run."""
        if self.key is not None:
            self.check(library, self.key)
        with self._opened(library) as addition:
            if self.key is None:
                self.check(library, addition.model)
            yield addition

    def check(self, library: Library, key: str) -> None:
        """Raise `UsageError` unless the model added its rows with these settings: rows are known by it alone."""
        stored = library.additions.settings(self.name, key)
        remedy = f"kinodex remove added {shlex.quote(library.uri)} {self.name} {shlex.quote(key)}"
        if CONTENT in stored and stored[CONTENT] != self.kept.get(CONTENT, stored[CONTENT]):
            raise UsageError(
                f"the files of {key} are others than those that made {self.name} in {library.uri}; give the model that "
                f"made them, or first take out what is there: {remedy}"
            )
        changed = [name for name in self.fixed if name in stored and stored[name] != self.settings.get(name)]
        if changed:
            raise UsageError(
                f"got {self._options(self.settings, changed)}, but {library.uri} holds {self.name} by {key} made with "
                f"{self._options(stored, changed)}; give that again, or first take out what is there: {remedy}"
            )

    def share(self, processes: int) -> Self:
        """Divide what is limited as a whole among processes."""
        return self

    def forecast(self, library: Library, video_ids: Sequence[str] | None) -> Forecast:
        """Return the costs of adding it to these videos, or to all; nothing is sent."""
        forecast: Forecast = self._work().forecast(self, library, video_ids)
        return forecast

    def _opened(self, library: Library) -> AbstractContextManager[Addition]:
        opened: AbstractContextManager[Addition] = self._work().open(self, library)
        return opened

    def _options(self, settings: Mapping[str, Any], names: Sequence[str]) -> str:
        """Settings as options of the command line."""
        return " ".join(_option(option_of(type(self), name), settings[name]) for name in names)

    def _work(self) -> Any:
        if not isinstance(self.work, str):
            return self.work
        module, _, name = self.work.partition(":")
        return getattr(import_module(module), name)


class Written(Stage):
    """Settings of a stage whose rows a model writes of parts of videos: a local one, or one behind an endpoint."""

    is_forecast: ClassVar[bool] = True

    model: Annotated[str, Flag("A model of transformers (hub id or folder), or one that --base-url serves.", "--model")]
    base_url: Annotated[
        str | None,
        Flag(
            "An OpenAI-compatible endpoint, http://HOST:PORT/v1. Without it a folder or a hub id is loaded here, and "
            "any other name is a model of OpenAI's, or of OPENAI_BASE_URL."
        ),
    ] = None
    batch: Annotated[
        int | None,
        Flag(
            f"Parts at once, of several videos together at an endpoint. Default: {HERE_AT_ONCE}, there "
            f"{SERVED_AT_ONCE}."
        ),
    ] = Field(default=None, ge=1)
    device: Device = "auto"
    input_price: InputPrice = Field(default=0.0, ge=0)
    output_price: Annotated[float, Flag("Money for a million output tokens.", is_rare=True)] = Field(default=0.0, ge=0)
    stop_at_cost: Annotated[
        float | None,
        Flag("No request begins once those of this run cost so much; run again to go on with what came.", is_rare=True),
    ] = None
    batch_api: Annotated[
        bool, Flag("Send the requests by the endpoint's Batch API: half the price, done within a day.", "--batch-api")
    ] = False
    send: Any = Field(default=None, exclude=True, repr=False)
    """The way of requests to the endpoint, if it is not HTTP."""
    asked_as: Any = Field(default=None, exclude=True, repr=False)
    """All settings of the endpoint's model (`Role`), where they are known: the fields above are part of them."""

    @model_validator(mode="before")
    @classmethod
    def _find_endpoint(cls, given: Any) -> Any:
        """Take the endpoint of a name that is neither a folder nor a hub id; a folder is named by its whole path."""
        if not isinstance(given, Mapping) or not isinstance(model := given.get("model"), str):
            return given
        base_url = given.get("base_url") or endpoint_of(model)
        return {**given, "base_url": base_url, "model": model if base_url else local_name(model)}

    @model_validator(mode="after")
    def _check_costs(self) -> Self:
        if self.batch_api and self.base_url is None:
            raise UsageError("got --batch-api for a local model, which costs nothing; give --base-url")
        if self.stop_at_cost is not None and self.batch_api:
            raise UsageError(
                "got --stop-at-cost with --batch-api, which sends all requests before one is paid; leave one out, and "
                "see the bill with --dry-run"
            )
        return self

    @property
    def key(self) -> str:
        return self.model

    @property
    def fixed(self) -> Sequence[str]:
        return [name for name in self.in_common if self.base_url is None or name != "max_new_tokens"]

    @property
    def served(self) -> str:
        """The model's name at the endpoint."""
        return self.model

    @property
    def runs_on(self) -> str:
        return "cpu" if self.base_url else self.device

    @property
    def at_once(self) -> int:
        """Parts that a local model is given at once, or requests to an endpoint at once."""
        return self.batch or (HERE_AT_ONCE if self.base_url is None else SERVED_AT_ONCE)

    @property
    def role(self) -> Any:
        """Settings of the endpoint's model (`Role`); prices are of a million tokens."""
        from kinodex.agent.models.roles import read_roles

        if self.asked_as is not None:
            return self.asked_as
        price = {"input": self.input_price, "output": self.output_price}
        role = {"model": self.served, "base_url": self.base_url, "at_once": self.at_once, "price": price}
        return read_roles({"default": role})["default"]

    def share(self, processes: int) -> Self:
        """Divide the requests at once among processes; a local model works on as much as before in each."""
        if self.base_url is None:
            return self
        return self.model_copy(update={"batch": max(1, self.at_once // processes)})

    def writer(self, library: Library) -> Any:
        """Make the requests about each video, and the rows of their replies (`Writer`); nothing is loaded."""
        return self._work()(self, library)

    @property
    def price_share(self) -> float:
        """The share of the ordinary price that is paid (OpenAI's pricing of batches)."""
        return 0.5 if self.batch_api else 1.0


@dataclass(frozen=True, slots=True)
class StageWork(Generic[S]):
    """Work of a stage in one library, as far as all do the same (`kinodex.jobs.add.run.Addition`)."""

    stage: S
    library: Library

    @classmethod
    @contextmanager
    def open(cls, stage: S, library: Library) -> Iterator[Self]:
        """Load what is needed, here nothing, and let go of it at the end."""
        yield cls(stage, library)

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def model(self) -> str:
        assert self.stage.key is not None
        return self.stage.key

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.stage.kept

    def prepare(self) -> None:
        """Prepare the library's tables: there is nothing to do."""

    def again(self) -> Collection[str]:
        """Ids of the videos that have rows, and get them again: none."""
        return ()

    def rows_of(self, video: VideoRow) -> AddedRows:
        """Make the rows of one video; raises a PipelineError or `ModelRejected` if that fails."""
        raise NotImplementedError

    def write(self, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos, by their ids."""
        raise NotImplementedError


def option_of(kind: type[Stage], name: str) -> str:
    """Return the option of a setting on the command line."""
    flag = flag_of(kind.model_fields[name].metadata) if name in kind.model_fields else None
    spelling = flag.name if flag is not None and flag.name else f"--{name.replace('_', '-')}"
    return spelling.split()[0].split("/")[0]


def _option(option: str, value: Any) -> str:
    if isinstance(value, bool):
        return option if value else option.replace("--", "--no-", 1)
    return f"no {option}" if value is None else f"{option} {value}"
