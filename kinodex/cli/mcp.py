"""`kinodex mcp`: the tools of an assistant, until it leaves or Ctrl-C."""

from __future__ import annotations

import logging
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.agent.limits.budget import Budget
from kinodex.cli import model_options
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import LibraryArgument, open_library
from kinodex.output import tell

if TYPE_CHECKING:
    import socket

    from kinodex.desk import Desk
    from kinodex.jobs.models import ModelChoice

UNTIL_240_S = Budget(seconds=240.0)
"""Clients of MCP give up at some point."""


@with_groups
def mcp(
    library: LibraryArgument,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port; 0: a free one.")] = 8000,
    agent: Annotated[
        str, typer.Option(help="Agent if a call names none: a name of `kinodex agents`, or FILE.py.")
    ] = "kino",
    asking: model_options.Asking = model_options.USUAL,
    budget: Budget = UNTIL_240_S,
) -> None:
    """Serve a library to an assistant over the Model Context Protocol, until the client leaves or Ctrl-C."""
    import asyncio

    from kinodex.agent.catalogue import find_variant
    from kinodex.desk import Desk
    from kinodex.jobs.open import find_space
    from kinodex.server.sockets import listen

    chosen = find_variant(agent)
    choice = asking.choice(budget)
    opened = open_library(library)
    find_space(opened, asking.space)  # an unknown one is refused before a client connects
    model_options.announce(choice)
    desk = Desk(opened, choice, space=asking.space, detector=asking.detector, agent=chosen, is_local=False)
    listener = listen(host, port) if http else None
    with suppress(KeyboardInterrupt):  # Ctrl-C is how to end it
        asyncio.run(_serve_mcp(desk, choice, budget, listener, host))


async def _serve_mcp(
    desk: Desk, choice: ModelChoice, budget: Budget, listener: socket.socket | None, host: str
) -> None:
    from kinodex.jobs.models import chosen_models, describe_models
    from kinodex.mcp.ask_tool import AskOptions, answer_here
    from kinodex.mcp.http import serve_http
    from kinodex.mcp.server import make_server

    async with chosen_models(choice) as models:
        asking = AskOptions(describe_models(choice), budget)
        server = make_server(desk, asking, answer_here(desk, models), looks=choice.may_use_endpoints)
        _announce(desk.library.uri, listener, host)
        if listener is None:
            # A thread that reads stdin would hold up an orderly end.
            before = signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                await server.run_stdio_async()
            except* BrokenPipeError:
                logging.getLogger(__name__).info("the client has left")
            finally:
                signal.signal(signal.SIGINT, before)
        else:
            await serve_http(server, listener, host)


def _announce(library: str, listener: socket.socket | None, host: str) -> None:
    """Print the server's address on stderr: stdout may belong to the protocol."""
    from kinodex.server.guards import LOOPBACK
    from kinodex.server.sockets import http_url

    if listener is None:
        tell(f"serving {library} over stdio")
        return
    tell(f"serving {library} at {http_url(listener, host)}mcp")
    if host not in LOOPBACK:
        tell(f"warning: anyone who reaches {host} can read this library and ask; no password")
