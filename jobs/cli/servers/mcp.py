"""`kinodex mcp`: serve a library as tools of an assistant, over the Model Context Protocol."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options import models as options
from jobs.cli.options.answer_rules import AnywayOption
from jobs.cli.options.library import LibraryArgument

if TYPE_CHECKING:
    import socket

    from agent.core.budget import Budget
    from agent.variants.base import Variant
    from jobs.mcp.tools import LibraryTools
    from jobs.model_choice import ModelChoice


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

    from agent.core.budget import Budget
    from agent.variants.registry import find_variant
    from index.library import Library
    from jobs.mcp.tools import LibraryTools
    from jobs.model_choice import ModelChoice, knows_world
    from jobs.open_library import find_space
    from jobs.server_socket import listen

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
        asyncio.run(_serve(tools, choice, chosen if can_ask else None, budget, listener, host))


async def _serve(
    tools: LibraryTools,
    choice: ModelChoice,
    agent: Variant | None,
    budget: Budget,
    listener: socket.socket | None,
    host: str,
) -> None:
    from jobs.mcp.ask_tool import AskOptions
    from jobs.mcp.server import make_server, serve_http
    from jobs.model_choice import chosen_models, describe_models

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
    from jobs.server_socket import LOOPBACK, http_url

    if listener is None:
        print(f"serving {library} over stdio", file=sys.stderr)
        return
    print(f"serving {library} at {http_url(listener, host)}mcp", file=sys.stderr)
    if host not in LOOPBACK:
        print(f"warning: anyone who reaches {host} can read this library and ask; no password", file=sys.stderr)
