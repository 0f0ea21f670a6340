"""Options of commands that ask models: models, prices and budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jobs.model_choice import ModelChoice

ModelOption = Annotated[
    str,
    typer.Option(
        help="builtin, a model of an OpenAI-compatible endpoint, local:FOLDER, constrained:FOLDER, or replay:TRACE."
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(help="The endpoint, http://HOST:PORT/v1.", show_default="OPENAI_BASE_URL, else OpenAI's"),
]
ModelsOption = Annotated[
    Path | None, typer.Option(help="TOML file with a model for each role instead; other options fill in what it lacks.")
]
CacheOption = Annotated[bool, typer.Option(help="Keep replies on disk and use them again.")]
SampleOption = Annotated[int, typer.Option(help="Number of the repetition: another number asks the models again.")]
AtOnceOption = Annotated[int, typer.Option(min=1, help="Requests to a model under way together.")]
DetectorOption = Annotated[
    str | None,
    typer.Option(help="Model for things that the library's detections do not name: a hub id or folder."),
]
SpaceOption = Annotated[
    str | None, typer.Option(help="Look for frames in this space of the library, by its name or digest.")
]
InputPriceOption = Annotated[float, typer.Option(help="Money for a million input tokens.")]
OutputPriceOption = Annotated[float, typer.Option(help="Money for a million output tokens.")]
MaxFramesOption = Annotated[int | None, typer.Option(help="Budget of a question: different frames shown.")]
MaxRoundsOption = Annotated[int | None, typer.Option(help="Budget: rounds, if the agent allows that many.")]
MaxTokensOption = Annotated[int | None, typer.Option(help="Budget: tokens in and out.")]
MaxSecondsOption = Annotated[
    float | None, typer.Option(help="Budget: seconds of its own work; waiting for other questions is none.")
]
MaxCostOption = Annotated[float | None, typer.Option(help="Budget: money, at the prices of the models.")]


def announce(choice: ModelChoice) -> None:
    """Name the models behind endpoints that are about to be asked, and their hosts, on standard error."""
    import sys

    from jobs.model_choice import describe_endpoints

    if named := describe_endpoints(choice):
        print(f"asking {'; '.join(named)}", file=sys.stderr, flush=True)


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the calls, frames, tokens and money expected, and send nothing.")
]

StopAtCostOption = Annotated[
    float | None,
    typer.Option(
        help="What this run may cost, with what is in progress; run again to continue. Cached replies count in full."
    ),
]


def check_cost(
    choice: ModelChoice, max_cost: float | None, stop_at_cost: float | None = None, max_usd_per_day: float | None = None
) -> None:
    """Raise `UsageError` for an amount of money that is not above 0, or that needs prices which no model has."""
    from jobs.errors import UsageError
    from jobs.model_choice import has_prices

    amounts = {"--max-cost": max_cost, "--stop-at-cost": stop_at_cost, "--max-usd-per-day": max_usd_per_day}
    for option, amount in amounts.items():
        if amount is not None and not 0 < amount < float("inf"):
            raise UsageError(f"got {option} {amount:g}; give an amount of more than 0, or leave it out")
        if amount is not None and not has_prices(choice):
            raise UsageError(
                f"got {option} without prices: no model of this run has one; give --input-price and --output-price "
                "per million tokens, or a price in the table of a role"
            )
