"""Commands that serve until Ctrl-C: pages in a browser, questions, and tools of an assistant.

May import jobs, agent and index when they run, and the options of the command line at once.
"""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import options
from kinodex.cli.options import AnywayOption, LibraryArgument, OtlpOption

if TYPE_CHECKING:
    import socket

    from kinodex.agent.limits import Budget
    from kinodex.agent.variants.base import Variant
    from kinodex.jobs.models import ModelChoice
    from kinodex.mcp.server import LibraryTools
    from kinodex.web.inputs import ViewerApi
    from kinodex.web.questions import ServeSettings

# `kinodex mcp`: serve a library as tools of an assistant, over the Model Context Protocol.

log = logging.getLogger(__name__)

NO_MODEL = (
    "no tool `ask`: the built-in model knows drawn films alone, and this library holds others; "
    "name a language model with --model (and --base-url), or give --anyway"
)


def mcp(
    library: LibraryArgument,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port; 0: a free one.")] = 8000,
    agent: Annotated[
        str, typer.Option(help="Agent if a call names none: a name of `kinodex agents`, or FILE.py.")
    ] = "eea",
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    detector: options.DetectorOption = None,
    space: options.SpaceOption = None,
    max_frames: options.MaxFramesOption = None,
    max_rounds: options.MaxRoundsOption = None,
    max_tokens: options.MaxTokensOption = None,
    max_seconds: options.MaxSecondsOption = 240.0,  # clients give up at some point
    max_cost: options.MaxCostOption = None,
    input_price: options.InputPriceOption = 0.0,
    output_price: options.OutputPriceOption = 0.0,
    cache: options.CacheOption = True,
    anyway: AnywayOption = False,
) -> None:
    """Serve a library to an assistant over the Model Context Protocol, until the client leaves or Ctrl-C."""
    import asyncio

    from kinodex.agent.ask import find_variant
    from kinodex.agent.limits import Budget
    from kinodex.guards import listen
    from kinodex.index.library import Library
    from kinodex.jobs.models import ModelChoice, knows_world
    from kinodex.jobs.open import find_space
    from kinodex.mcp.server import LibraryTools

    chosen = find_variant(agent)
    choice = ModelChoice(model, base_url, models, input_price, output_price, cache, anyway=anyway)
    options.check_cost(choice, max_cost)
    budget = Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    opened = Library.open(library)
    can_ask = not chosen.roles or knows_world(
        choice, find_space(opened, space), has_pictures=any(row.frames for row in opened.videos())
    )
    if can_ask:
        options.announce(choice)
    else:
        print(NO_MODEL, file=sys.stderr)
    tools = LibraryTools(opened, detector, space)
    listener = listen(host, port) if http else None
    with suppress(KeyboardInterrupt):  # Ctrl-C is how to end it
        asyncio.run(_serve_mcp(tools, choice, chosen if can_ask else None, budget, listener, host))


async def _serve_mcp(
    tools: LibraryTools,
    choice: ModelChoice,
    agent: Variant | None,
    budget: Budget,
    listener: socket.socket | None,
    host: str,
) -> None:
    from kinodex.jobs.models import chosen_models, describe_models
    from kinodex.mcp.server import AskOptions, make_server, serve_http

    async with chosen_models(choice) as models:
        asking = None if agent is None else AskOptions(models, describe_models(choice), agent, budget)
        server = make_server(tools, asking)
        _announce(tools.library.uri, listener, host)
        if listener is None:
            # A thread that reads stdin would hold up an orderly end.
            before = signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                await server.run_stdio_async()
            except* BrokenPipeError:
                log.info("the client has left")
            finally:
                signal.signal(signal.SIGINT, before)
        else:
            await serve_http(server, listener, host)


def _announce(library: str, listener: socket.socket | None, host: str) -> None:
    """Print the server's address on stderr: stdout may belong to the protocol."""
    from kinodex.guards import LOOPBACK, http_url

    if listener is None:
        print(f"serving {library} over stdio", file=sys.stderr)
        return
    print(f"serving {library} at {http_url(listener, host)}mcp", file=sys.stderr)
    if host not in LOOPBACK:
        print(f"warning: anyone who reaches {host} can read this library and ask; no password", file=sys.stderr)


# `kinodex serve`: look at libraries, ask about them and play their videos in a browser or from other programs.

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
    from kinodex.agent.ask import find_variant
    from kinodex.agent.limits import Budget
    from kinodex.guards import check_host, check_token
    from kinodex.jobs.models import ModelChoice
    from kinodex.jobs.telemetry import spans_to
    from kinodex.web.kept import traces_folder
    from kinodex.web.questions import ServeSettings

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

    from kinodex.guards import Guard, http_url, listen
    from kinodex.jobs.errors import UsageError
    from kinodex.web.app import Site
    from kinodex.web.app import serve as serve_site
    from kinodex.web.inputs import ViewerApi, classify_inputs
    from kinodex.web.questions import Questions

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


# `kinodex view`: traces, runs and libraries in a browser.


def view(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE|RUN|LIBRARY...",
            help="Traces, run folders of `kinodex eval`, libraries. A trace's frames come from a library in this list.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write all of it, with its frames, into this one HTML file instead.")
    ] = None,
    space: options.SpaceOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 8700,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Look at traces, runs and libraries in a browser, until Ctrl-C."""
    from kinodex.jobs.errors import UsageError
    from kinodex.web.inputs import ViewerApi, classify_inputs

    if out is not None and space is not None:
        raise UsageError("got --space with --out, which writes a file that cannot search; leave one of them out")
    inputs = classify_inputs(places)
    for uri in inputs.missing:
        print(f"no library at {uri}, which a run belongs to: its frames are missing", file=sys.stderr)
    api = ViewerApi(inputs, space)
    for key in api.trace_keys():
        api.view(key)  # a trace that cannot be read ends the command, not a page in the browser
    if out is not None:
        _write(api, out)
    else:
        _serve_pages(api, host, port, browser)


def _write(api: ViewerApi, out: Path) -> None:
    from kinodex.jobs.errors import UsageError
    from kinodex.web.page import one_file

    page = one_file(api)
    try:
        out.write_text(page.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}; give --out a file that you can write") from error
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, needs no network")
    if page.traces_left_out or page.pictures_left_out:
        print(f"left out for the file's size: {page.traces_left_out} traces, {page.pictures_left_out} frames")


def _serve_pages(api: ViewerApi, host: str, port: int, browser: bool) -> None:
    import webbrowser

    from kinodex.guards import LOOPBACK, http_url, listen
    from kinodex.web.pages import serve

    listener = listen(host, port)
    address = http_url(listener, host)
    print(f"{address} (Ctrl-C ends it)", file=sys.stderr)
    if host not in LOOPBACK:
        print(f"warning: anyone who reaches {host} can see all of this; there is no password", file=sys.stderr)
    if browser:
        webbrowser.open(address)
    serve(api, listener, _names(host))


def _names(host: str) -> list[str]:
    """Hosts that a request may name; any, where the server listens on every address of the machine."""
    from kinodex.guards import LOOPBACK

    if host in LOOPBACK:
        return [*LOOPBACK, "[::1]"]
    return ["*"] if host in ("0.0.0.0", "::", "") else [host, f"[{host}]"]
