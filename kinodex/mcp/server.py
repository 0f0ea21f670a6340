"""The MCP server over one library: its tools and its instructions for assistants.

Speaks the Model Context Protocol (https://modelcontextprotocol.io) by its official Python SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from kinodex.agent.catalogue import VARIANTS, find_variant
from kinodex.desk import Desk
from kinodex.mcp.ask_tool import Answering, AskOptions, ask_tool
from kinodex.mcp.library_tools import LibraryTools
from kinodex.mcp.tool_schemas import tool_of

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
"""Captions and verdicts that a model has made may be kept in the library, and the model may be elsewhere."""


def make_server(
    desk: Desk, options: AskOptions | None = None, answering: Answering | None = None, *, looks: bool = False
) -> MCPServer:
    """Make a server with all tools over the library of a desk.

    With `options` and something that answers there is a tool `ask`. `looks`: a model may look at hits.
    """
    turn, tools = anyio.Lock(), LibraryTools(desk)
    searches = tools.search, tools.ground
    reads = (
        *(tools.videos, tools.overview, tools.frames),
        *(tools.lines, tools.captions, tools.chapters, tools.detections),
    )
    offered = [tool_of(_in_turn(search, turn), ASKS if looks else READS) for search in searches]
    offered += [tool_of(_in_turn(read, turn), READS) for read in reads]
    if options is not None and answering is not None:
        offered.append(tool_of(ask_tool(desk, answering, options), ASKS))
    instructions = _instructions(desk, options)
    return MCPServer(
        "kinodex", version=version("kinodex"), instructions=instructions, tools=offered, log_level="WARNING"
    )


def _instructions(desk: Desk, options: AskOptions | None) -> str:
    from jinja2 import StrictUndefined, Template

    text = Path(__file__).with_name("instructions.jinja").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, keep_trailing_newline=True)
    if options is None:
        return str(template.render(agent=None))
    own = find_variant(desk.agent)
    agents = ", ".join(dict.fromkeys(each.name for each in (*VARIANTS, own)))
    models = ", ".join(f"{role} {name}" for role, name in options.model_names.items())
    return str(template.render(agent=own.name, agents=agents, models=models))


def _in_turn(function: Callable[..., Any], turn: anyio.Lock) -> Callable[..., Any]:
    """Run the function in a thread, one call at a time, so that reading a library does not hold up the protocol."""

    @wraps(function)
    async def waiting(*args: Any, **arguments: Any) -> Any:
        async with turn:
            return await anyio.to_thread.run_sync(partial(function, *args, **arguments))

    return waiting
