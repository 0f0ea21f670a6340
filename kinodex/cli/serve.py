"""`kinodex serve`: pages in a browser, and answers to other programs, until Ctrl-C."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.agent.limits.budget import Budget
from kinodex.cli import model_options
from kinodex.cli.from_models import with_groups
from kinodex.cli.model_options import OtlpOption
from kinodex.output import tell

if TYPE_CHECKING:
    import socket

    from kinodex.web.app import Site

TOKEN_VARIABLE = "KINODEX_SERVE_TOKEN"
HostOption = Annotated[str, typer.Option(help="The address to listen on; another than this machine's needs a token.")]
TokenOption = Annotated[
    str | None, typer.Option(help="Every request has to show this token.", envvar=TOKEN_VARIABLE, show_envvar=True)
]
TracesOption = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps all questions.", show_default="KINODEX_STATE, else ~/.local/state/kinodex"),
]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")]
BrowserOption = Annotated[bool, typer.Option(help="Open the page in the browser.")]
UNTIL_600_S = Budget(seconds=600.0)


@with_groups
def serve(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="LIBRARY|TRACE|RUN...",
            help="Libraries (folders or URIs), traces, run folders of `kinodex eval`. A trace's frames come from a "
            "library in this list.",
        ),
    ],
    agent: Annotated[
        str, typer.Option(help="Agent if a question names none: a name of `kinodex agents`, or FILE.py.")
    ] = "kino",
    host: HostOption = "127.0.0.1",
    port: PortOption = 8700,
    token: TokenOption = None,
    traces: TracesOption = None,
    questions_at_once: Annotated[int, typer.Option(min=1, help="Questions answered at the same time.")] = 4,
    max_usd_per_day: Annotated[
        float | None, typer.Option(help="Money that all questions of a day may cost, at the prices of the models.")
    ] = None,
    asking: model_options.Asking = model_options.USUAL,
    budget: Budget = UNTIL_600_S,
    otlp: OtlpOption = None,
    browser: BrowserOption = True,
) -> None:
    """Look, ask and play in a browser, and answer other programs, until Ctrl-C.

    Without a token only this machine is let in.
    """
    from contextlib import ExitStack, closing

    from kinodex.agent.catalogue import find_variant
    from kinodex.jobs.telemetry import spans_to
    from kinodex.server.guards import Guard, check_host, check_token
    from kinodex.server.sockets import listen
    from kinodex.web.app import Site
    from kinodex.web.inputs import classify_inputs
    from kinodex.web.kept_traces import traces_folder
    from kinodex.web.questions import Questions
    from kinodex.web.serve_settings import ServeSettings
    from kinodex.web.viewer_api import ViewerApi

    check_host(host, token)
    if token is not None:
        check_token(token)
    choice = asking.choice(budget, max_usd_per_day)
    settings = ServeSettings(
        choice,
        find_variant(agent),
        traces or traces_folder(),
        budget,
        questions_at_once,
        max_usd_per_day,
        asking.space,
        asking.detector,
    )
    inputs = classify_inputs(places)
    for uri in inputs.missing:
        tell(f"no library at {uri}, which a run belongs to: its frames are missing")
    api = ViewerApi(inputs, asking.space)
    for key in api.trace_keys():
        api.view(key)  # a trace that cannot be read ends the command, not a page in the browser
    model_options.announce(choice)
    with spans_to(otlp) as watch, listen(host, port) as listener, ExitStack() as stack:
        questions = None
        if inputs.libraries:  # of traces alone there is nothing to ask
            questions = stack.enter_context(closing(Questions(inputs.libraries, replace(settings, watch=watch))))
        _open(Site(api, questions, Guard(host, listener.getsockname()[1], token)), listener, browser=browser)


def _open(site: Site, listener: socket.socket, *, browser: bool) -> None:
    """Say where a site is, show it in the browser if that is wanted, and serve it until Ctrl-C."""
    import webbrowser
    from urllib.parse import quote

    from kinodex.server.sockets import http_url
    from kinodex.web.app import serve as serve_site

    token = site.guard.token
    address = http_url(listener, site.guard.host)
    tell(f"{address}{'' if token is None else ' with ?token=TOKEN behind it'} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(address if token is None else f"{address}?token={quote(token)}")
    serve_site(site, listener)
