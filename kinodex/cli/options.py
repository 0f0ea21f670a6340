"""Options that several commands share.

May import typer, and nothing heavy: every start of the command line imports this file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.from_models import MORE, flag_options
from kinodex.index.times import parse_time
from kinodex.output import tell

if TYPE_CHECKING:
    from kinodex.agent.limits.budget import Budget
    from kinodex.index.library import Library
    from kinodex.jobs.models import ModelChoice

time_option = partial(typer.Option, parser=parse_time, metavar="TIME")
rare = partial(typer.Option, rich_help_panel=MORE)


# Options of `kinodex ingest`: one for each setting that has a `Flag` in jobs/ingest/config.py.


def spread_ray(arguments: list[str]) -> list[str]:
    """`--ray ADDRESS` and `--ray=ADDRESS` as `--ray-address ADDRESS`; what looks like no address stays a source.

    Typer has no options whose value may be left out.
    """
    spread: list[str] = []
    for argument in arguments:
        if argument.startswith("--ray="):
            spread += ["--ray-address", argument.removeprefix("--ray=")]
        elif spread[-1:] == ["--ray"] and re.fullmatch(r"auto|local|ray://.+|[\w.\-]+:\d+", argument):
            spread[-1:] = ["--ray-address", argument]
        else:
            spread.append(argument)
    return spread


COMMON_SETTINGS = frozenset({"space", "fps", "device", "ray", "workers", "retry_failed"})


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Put an option for each setting that has a `Flag` in the place of a command's `**settings`.

    In `--help` they stand after the command's positional parameters and before its keyword-only ones.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    before = [each for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    after = [each for each in own if each.kind is each.KEYWORD_ONLY]
    from kinodex.jobs.ingest.config import IngestConfig

    settings = flag_options(IngestConfig, COMMON_SETTINGS)
    vars(command)["__signature__"] = inspect.Signature([*before, *settings, *after])
    return command


# Options of commands that read a library.


def open_library(uri: str, where: str | None = None) -> Library:
    """Open a library, or those of its videos for which a condition holds; Lance is imported only now."""
    from kinodex.index.library import Library

    return Library.open(uri).where(where)


LibraryArgument = Annotated[str, typer.Argument(help="The library: a folder or any URI that Lance takes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
VideoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--video",
        help="Only this video: id (or its first digits), title or a part of it, file, or a glob. May be repeated.",
    ),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Only videos for which this holds: \"camera = 'front' AND recorded_at >= '2026-03-01'\". `kinodex info` "
        "lists the columns.",
    ),
]
FromOption = Annotated[float | None, time_option("--from", help="Only from this time on: 90.5 or 1:30.5.")]
ToOption = Annotated[float | None, time_option("--to", help="Only before this time.")]


# Options of commands that ask models: models, prices and budgets.

ModelOption = Annotated[
    str,
    typer.Option(
        help="builtin, a model of an OpenAI-compatible endpoint, local:FOLDER, constrained:FOLDER, or replay:TRACE."
    ),
]
BaseUrlOption = Annotated[
    str | None, typer.Option(help="The endpoint, http://HOST:PORT/v1.", show_default="OPENAI_BASE_URL, else OpenAI's")
]
ModelsOption = Annotated[
    Path | None, rare(help="TOML file with a model for each role instead; other options fill in what it lacks.")
]
CacheOption = Annotated[bool, rare(help="Keep replies on disk and use them again.")]
SampleOption = Annotated[
    int, rare("--repetition", help="Number of the repetition: another number asks the models again.")
]
AtOnceOption = Annotated[int, typer.Option(min=1, help="Requests to a model under way together.")]
SpaceOption = Annotated[str | None, rare(help="Look for frames in this space of the library, by its name or digest.")]
InputPriceOption = Annotated[float, rare(help="Money for a million input tokens.")]
OutputPriceOption = Annotated[float, rare(help="Money for a million output tokens.")]


def announce(choice: ModelChoice) -> None:
    """Name the models behind endpoints that are about to be asked, and their hosts, on standard error."""
    from kinodex.jobs.models import describe_endpoints

    if named := describe_endpoints(choice):
        tell(f"asking {'; '.join(named)}")


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the calls, frames, tokens and money expected, and send nothing.")
]

StopAtCostOption = Annotated[
    float | None,
    rare(help="What this run may cost, with what is in progress; run again to continue. Cached replies count in full."),
]


def check_cost(
    choice: ModelChoice, max_cost: float | None, stop_at_cost: float | None = None, max_usd_per_day: float | None = None
) -> None:
    """Raise `UsageError` for an amount of money that is not above 0, or that needs prices which no model has."""
    from kinodex.jobs.errors import UsageError
    from kinodex.jobs.models import has_prices

    amounts = {"--max-cost": max_cost, "--stop-at-cost": stop_at_cost, "--max-usd-per-day": max_usd_per_day}
    for option, amount in amounts.items():
        if amount is not None and not 0 < amount < float("inf"):
            raise UsageError(f"got {option} {amount:g}; give an amount of more than 0, or leave it out")
        if amount is not None and not has_prices(choice):
            raise UsageError(
                f"got {option} without prices: no model of this run has one; give --input-price and --output-price "
                "per million tokens, or a price in the table of a role"
            )


@dataclass(frozen=True)
class Models:
    """The models that a command asks, for `with_groups`."""

    model: ModelOption = "builtin"
    base_url: BaseUrlOption = None
    models: ModelsOption = None
    input_price: InputPriceOption = 0.0
    output_price: OutputPriceOption = 0.0
    cache: CacheOption = True

    def chosen(self, **more: Any) -> ModelChoice:
        from kinodex.jobs.models import ModelChoice

        prices = self.input_price, self.output_price
        return ModelChoice(self.model, self.base_url, self.models, *prices, self.cache, **more)


@dataclass(frozen=True)
class Asking(Models):
    """The models that are asked, the space and the detector, for `with_groups`."""

    detector: Annotated[
        str | None, rare(help="Model for things that the library's detections do not name: a hub id or folder.")
    ] = None
    space: SpaceOption = None
    anyway: Annotated[
        bool, rare("--anyway", help="Ask the built-in model though it does not know what this library shows.")
    ] = False

    def choice(self, budget: Budget, max_usd_per_day: float | None = None) -> ModelChoice:
        """The models; raises as `check_cost`."""
        choice = self.chosen(anyway=self.anyway)
        check_cost(choice, budget.cost, max_usd_per_day=max_usd_per_day)
        return choice


USUAL = Asking()


@dataclass(frozen=True)
class Looking(Models):
    """The model that looks at the moments of a search, for `with_groups`."""

    dry_run: DryRunOption = False

    def choice(self, *, used: bool) -> ModelChoice | None:
        """The models, None where none are `used`; raises UsageError for options that would then do nothing."""
        if used:
            return self.chosen()
        if self != Looking():
            from kinodex.jobs.errors import UsageError

            raise UsageError("got --model or another option of models, and nothing for them to do; give --verify K too")
        return None


LOOKING = Looking()


# Options by which found ranges become what is watched.

FOR_HITS = "2 and 0 for hits and evidence in clips, subtitles and edits, else none"
PadOption = Annotated[
    float | None, typer.Option(min=0.0, help="Seconds to add before and after each.", show_default=FOR_HITS)
]
JoinOption = Annotated[
    float | None,
    typer.Option(help="Make one of those at most so many seconds apart; 0: that touch; -1: none.", show_default=False),
]
SnapOption = Annotated[bool, typer.Option("--snap", help="End at cuts: padding shows no other shot.")]


# The option that sends runs of agents to a collector.

OtlpOption = Annotated[
    str | None,
    rare(metavar="URL", help="Send the run as OpenTelemetry spans to this collector: http://127.0.0.1:4318."),
]


# The options that the commands of `kinodex add` share.


@dataclass(frozen=True)
class Adding:
    """The videos that get an addition, the use of Ray, and the form of the report, for `with_groups`."""

    video: VideoOption = None
    where: WhereOption = None
    ray: Annotated[bool, typer.Option("--ray", help="Share the work among Ray actors.")] = False
    ray_address: Annotated[
        str | None, rare("--ray-address", help="The Ray cluster. Default: RAY_ADDRESS, else one started here.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Ray actors, each with the model. Default: one a GPU, else one a core.")
    ] = None
    json: JsonOption = False


HERE = Adding()
