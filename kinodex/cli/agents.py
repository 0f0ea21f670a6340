"""`kinodex agents`: list the agents with their needs and parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.options import JsonOption
from kinodex.output import console, print_json

if TYPE_CHECKING:
    from kinodex.agent.variants.base import Variant

HOUR_S = 3600.0


def agents(
    name: Annotated[
        str | None, typer.Argument(help="Only this agent, with all its parameters; FILE.py shows one of your own.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the agents with the model roles that they ask, the tables that they read, and their parameters."""
    from kinodex.agent.catalogue import VARIANTS, find_variant

    chosen = VARIANTS if name is None else (find_variant(name),)
    if json:
        print_json([_plain(each) for each in chosen])
    elif name is None:
        _show_all(chosen)
    else:
        _show_one(chosen[0])


def _plain(each: Variant) -> dict[str, Any]:
    from kinodex.agent.variants.settings import describe_parameters, list_choices

    return {
        "name": each.name,
        "line": each.line,
        "roles": each.roles,
        "uses": each.uses,
        "needs_language": each.needs_language,
        "needs_pictures": each.needs_pictures,
        "needs_vectors": each.needs_vectors,
        "parameters": asdict(each.parameters(HOUR_S)),
        "meanings": describe_parameters(type(each.parameters(HOUR_S))),
        "choices": list_choices(type(each.parameters(HOUR_S))),
        "ablations": dict(each.ablations),
    }


def _show_all(chosen: tuple[Variant, ...]) -> None:
    from rich.padding import Padding

    out = console()
    for each in chosen:
        shown = _plain(each)
        models = ", ".join(each.roles) or "none"
        defaults = " ".join(f"{name}={value}" for name, value in shown["parameters"].items())
        out.print(f"[bold]{each.name}[/]", highlight=False)
        for line in (
            each.line,
            f"models: {models}{' (language)' if each.needs_language else ''}{' (pictures)' * each.needs_pictures}"
            f"{' (vectors)' * each.needs_vectors}; also reads: {', '.join(each.uses) or 'nothing'}",
            f"defaults: {defaults}",
        ):
            out.print(Padding(line, (0, 0, 0, 4)), highlight=False)
    out.print(
        "\nDefaults are for an hour-long video; --set NAME=VALUE changes one. Agents marked (language) need a\n"
        "language model: --model NAME --base-url URL. Those marked (pictures) need frames, not just captions;\n"
        "(vectors): not in a library that was made with --space none.\n"
        "`kinodex agents NAME` shows one, with its ablations.",
        highlight=False,
    )


def _show_one(each: Variant) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    out, shown = console(), _plain(each)
    out.print(f"[bold]{each.name}[/]: {escape(each.line)}", highlight=False)
    for title in ("roles", "uses"):
        out.print(f"{title:<10} {', '.join(shown[title]) or 'none'}", highlight=False)
    out.print("\nparameters, for an hour-long video:", highlight=False)
    for name, value in shown["parameters"].items():
        choices = shown["choices"].get(name)
        others = f" ({', '.join(choices)})" if choices else ""
        out.print(f"  --set {name}={escape(str(value))}{escape(others)}", highlight=False)
        out.print(Padding(escape(shown["meanings"].get(name, "")), (0, 0, 0, 6), expand=False), highlight=False)
    if shown["ablations"]:
        out.print("\nablations:", highlight=False)
    for title, settings in shown["ablations"].items():
        out.print(f"  {escape(title)}", highlight=False)
        for name, value in settings.items():
            out.print(f"      --set {name}={escape(str(value))}", highlight=False)
