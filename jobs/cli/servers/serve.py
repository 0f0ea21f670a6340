"""`kinodex serve`: look at libraries, ask about them and play their videos in a browser or from other programs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options import models as options
from jobs.cli.options.answer_rules import AnywayOption
from jobs.cli.options.telemetry import OtlpOption

if TYPE_CHECKING:
    from jobs.serve.settings import ServeSettings

TOKEN_VARIABLE = "KINODEX_SERVE_TOKEN"
HostOption = Annotated[str, typer.Option(help="The address to listen on; another than this machine's needs a token.")]
TokenOption = Annotated[
    str | None,
    typer.Option(help="Every request has to show this token.", envvar=TOKEN_VARIABLE, show_envvar=True),
]
TracesOption = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps all questions.", show_default="KINODEX_STATE, else ~/.local/state/kinodex"),
]


def serve(
    libraries: Annotated[list[str], typer.Argument(metavar="LIBRARY...", help="Libraries: folders or URIs.")],
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    agent: Annotated[
        str, typer.Option(help="Agent if a question names none: a name of `kinodex agents`, or FILE.py.")
    ] = "eea",
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 8700,
    token: TokenOption = None,
    traces: TracesOption = None,
    questions_at_once: Annotated[int, typer.Option(min=1, help="Questions answered at the same time.")] = 4,
    max_usd_per_day: Annotated[
        float | None, typer.Option(help="Money that all questions of a day may cost, at the prices of the models.")
    ] = None,
    detector: options.DetectorOption = None,
    space: options.SpaceOption = None,
    max_frames: options.MaxFramesOption = None,
    max_rounds: options.MaxRoundsOption = None,
    max_tokens: options.MaxTokensOption = None,
    max_seconds: options.MaxSecondsOption = 600.0,
    max_cost: options.MaxCostOption = None,
    input_price: options.InputPriceOption = 0.0,
    output_price: options.OutputPriceOption = 0.0,
    cache: options.CacheOption = True,
    anyway: AnywayOption = False,
    otlp: OtlpOption = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Look, ask and play in a browser, and answer other programs, until Ctrl-C.

    Without a token only this machine is let in.
    """
    from agent.core.budget import Budget
    from agent.variants.registry import find_variant
    from jobs.model_choice import ModelChoice
    from jobs.serve.guards import check_host, check_token
    from jobs.serve.kept_traces import traces_folder
    from jobs.serve.settings import ServeSettings
    from jobs.telemetry.otlp import spans_to

    check_host(host, token)
    if token is not None:
        check_token(token)
    choice = ModelChoice(model, base_url, models, input_price, output_price, cache, anyway=anyway)
    options.check_cost(choice, max_cost, max_usd_per_day=max_usd_per_day)
    settings = ServeSettings(
        choice,
        find_variant(agent),
        traces or traces_folder(),
        Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost),
        questions_at_once,
        max_usd_per_day,
        space,
        detector,
    )
    with spans_to(otlp) as watch:
        _serve(libraries, replace(settings, watch=watch), host, port, token, browser=browser)


def _serve(
    places: list[str], settings: ServeSettings, host: str, port: int, token: str | None, *, browser: bool
) -> None:
    import webbrowser
    from contextlib import closing
    from urllib.parse import quote

    from jobs.errors import UsageError
    from jobs.serve.app import Site
    from jobs.serve.app import serve as serve_site
    from jobs.serve.guards import Guard
    from jobs.serve.questions import Questions
    from jobs.server_socket import http_url, listen
    from jobs.viewer.api import ViewerApi
    from jobs.viewer.inputs import classify_inputs

    inputs = classify_inputs(places)
    if inputs.traces or inputs.runs:
        raise UsageError("got a trace or a run, which `kinodex view` shows; give libraries")
    api = ViewerApi(inputs, settings.space)
    options.announce(settings.choice)
    with listen(host, port) as listener, closing(Questions(inputs.libraries, settings)) as questions:
        address = http_url(listener, host)
        print(f"{address}{'' if token is None else '?token=…'} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if browser:
            webbrowser.open(address if token is None else f"{address}?token={quote(token)}")
        guard = Guard(host, listener.getsockname()[1], token)
        serve_site(Site(api, questions, guard), listener)
