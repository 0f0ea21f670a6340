"""`kinodex mcp`: a library as tools of an assistant, over the Model Context Protocol."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.library_commands import LibraryArgument

if TYPE_CHECKING:
    import socket

    from agent.ledger import Budget
    from jobs.mcp_tools import LibraryTools
    from jobs.models import ModelChoice

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def mcp(
    library: LibraryArgument,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port; 0: a free one.")] = 8000,
    agent: Annotated[
        str, typer.Option(help="Who answers if a call names nobody; `kinodex agents` lists them.")
    ] = "eea",
    model: Annotated[
        str, typer.Option(help="builtin, a model of an OpenAI-compatible endpoint, local:FOLDER, or replay:TRACE.")
    ] = "builtin",
    base_url: Annotated[str | None, typer.Option(help="The endpoint, http://HOST:PORT/v1.")] = None,
    models: Annotated[Path | None, typer.Option(help="TOML file with a model for each role instead.")] = None,
    detector: Annotated[
        str | None, typer.Option(help="Finds things that the library's detections do not tell: a hub id or a folder.")
    ] = None,
    max_frames: Annotated[int | None, typer.Option(help="Budget of a question: different frames shown.")] = None,
    max_rounds: Annotated[int | None, typer.Option(help="Budget: rounds, if the agent allows as many.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget: tokens in and out.")] = None,
    max_seconds: Annotated[float, typer.Option(help="Budget: seconds; clients do not wait for ever.")] = 240.0,
    max_cost: Annotated[float | None, typer.Option(help="Budget: money, at the prices given.")] = None,
    input_price: Annotated[float, typer.Option(help="Money for a million input tokens.")] = 0.0,
    output_price: Annotated[float, typer.Option(help="Money for a million output tokens.")] = 0.0,
    cache: Annotated[bool, typer.Option(help="Keep replies on disk and use them again.")] = True,
) -> None:
    """Serve a library to an assistant by the Model Context Protocol, until the client goes or Ctrl-C."""
    import asyncio

    from agent.catalogue import variant
    from agent.ledger import Budget
    from index.library import Library
    from jobs.ask_command import check_cost
    from jobs.listening import listen
    from jobs.mcp_tools import LibraryTools
    from jobs.models import ModelChoice

    variant(agent)
    choice = ModelChoice(model, base_url, models, input_price, output_price, cache)
    check_cost(choice, max_cost)
    budget = Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    tools = LibraryTools(Library.open(library), detector)
    listener = listen(host, port) if http else None
    asyncio.run(_serve(tools, choice, agent, budget, listener, host))


async def _serve(
    tools: LibraryTools, choice: ModelChoice, agent: str, budget: Budget, listener: socket.socket | None, host: str
) -> None:
    from jobs.mcp_ask import Asking
    from jobs.mcp_server import make_server, serve_http
    from jobs.models import chosen_models, named_models

    async with chosen_models(choice) as models:
        server = make_server(tools, Asking(models, named_models(choice), agent, budget))
        _tell(tools.library.uri, listener, host)
        if listener is None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that reads stdin would hold up an orderly end
            await server.run_stdio_async()
        else:
            await serve_http(server, listener, host)


def _tell(library: str, listener: socket.socket | None, host: str) -> None:
    """Say where the server is, on stderr: stdout may be the protocol's."""
    if listener is None:
        print(f"serving {library} over stdio", file=sys.stderr)
        return
    shown, port = f"[{host}]" if ":" in host else host, listener.getsockname()[1]
    print(f"serving {library} at http://{shown}:{port}/mcp", file=sys.stderr)
    if host not in LOOPBACK:
        print(f"warning: whoever reaches {host} can read this library and ask: there is no password", file=sys.stderr)
