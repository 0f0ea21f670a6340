"""Write the reference page of requests (docs/requests.md), from the models that declare them.

Run: python -m docs.requests_page > docs/requests.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from kinodex.index.flags import Flag, flag_of
from kinodex.requests import VERBS, Request, flags, outside

HEAD = """# Requests

*For programs that send requests. A verb has the same fields in Python, on the command line, over HTTP and in MCP.*

This page is written by `python -m docs.requests_page` from `kinodex/requests.py`, where each field is declared once.
In Python a field is an argument of the method of the same name (`in` is written `in_`). Over HTTP and in MCP it is a
field of the JSON object; a server gives the schemas at `/data/requests`. Fields marked *local* name a file or an
address, so only Python and the command line take them.
"""
FOOT = """
Read next: [Python](python.md), [HTTP](serve.md), [MCP](mcp.md), [all commands](commands.md).
"""


def main() -> None:
    print(page(), end="")


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(f"\n{section(verb, request)}" for verb, request in VERBS.items()) + FOOT


def section(verb: str, request: type[Request]) -> str:
    """Return the part of a verb: what it does, and a table of its fields."""
    rows = [
        line for name, field, flag in flags(request) for line in _lines(name, field.annotation, field.default, flag)
    ]
    table = ["| field | option | meaning |", "| --- | --- | --- |", *rows]
    return f"## {verb}\n\n{request.__doc__}\n\n" + "\n".join(table) + "\n"


def _lines(name: str, kind: Any, default: Any, flag: Flag) -> Iterator[str]:
    if not is_dataclass(kind):
        yield _line(outside(name), default, flag)
        return
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        inner = flag_of(get_args(hints[each.name])[1:])
        if inner is not None:
            yield _line(f"{outside(name)}.{each.name}", each.default, inner, each.name)


def _line(name: str, default: Any, flag: Flag, option: str | None = None) -> str:
    shown = flag.name or f"--{(option or name).replace('_', '-')}"
    shown = (option or name).upper() if flag.is_argument else f"{shown} {flag.metavar}" if flag.metavar else shown
    usual = f" Default: `{default}`." if isinstance(default, str | int | float) and default not in ("", 0) else ""
    local = " *Local.*" if flag.is_local else ""
    return f"| `{name}` | `{shown}` | {flag.help.replace('|', chr(92) + '|')}{usual}{local} |"


if __name__ == "__main__":
    main()
