"""Options of commands that ask models: the models, prices, budgets, and the collector of runs.

May import typer, and nothing heavy: the help of most commands imports this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.options import rare
from kinodex.output import tell

if TYPE_CHECKING:
    from kinodex.agent.limits.budget import Budget
    from kinodex.jobs.models import ModelChoice

ModelOption = Annotated[
    str,
    typer.Option(
        help="similarity, a model of an OpenAI-compatible endpoint, local:FOLDER, constrained:FOLDER, or replay:TRACE."
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
AtOnceOption = Annotated[int, typer.Option(min=1, help="Requests to a model under way together, at most.")]
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

    model: ModelOption = "similarity"
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

    def choice(self, budget: Budget, max_usd_per_day: float | None = None) -> ModelChoice:
        """Return the models; raises as `check_cost`."""
        choice = self.chosen()
        check_cost(choice, budget.cost, max_usd_per_day=max_usd_per_day)
        return choice


USUAL = Asking()


@dataclass(frozen=True)
class Looking(Models):
    """The model that looks at the moments of a search, for `with_groups`."""

    dry_run: DryRunOption = False

    def choice(self, *, used: bool) -> ModelChoice | None:
        """Return the models, None where none are `used`; raises UsageError for options that would then do nothing."""
        if used:
            return self.chosen()
        if self != Looking():
            from kinodex.jobs.errors import UsageError

            raise UsageError("got --model or another option of models, and nothing for them to do; give --verify K too")
        return None


LOOKING = Looking()

OtlpOption = Annotated[
    str | None,
    rare(metavar="URL", help="Send the run as OpenTelemetry spans to this collector: http://127.0.0.1:4318."),
]
