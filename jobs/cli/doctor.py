"""`kinodex doctor`: what this machine can do, in one page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import JsonOption

if TYPE_CHECKING:
    from jobs.doctor.finding import Finding

ALWAYS = ("base", "builtin")
"""Without them nothing works at all."""
COLOURS = {"ok": "green", "missing": "yellow", "broken": "red"}


def doctor(
    library: Annotated[str | None, typer.Argument(help="Also check this library; reads all its rows' ids.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Also try this endpoint, http://HOST:PORT/v1.")] = None,
    model: Annotated[str | None, typer.Option(help="Its model; the first that it lists if not given.")] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Variable that holds the endpoint's key.", show_default="OPENAI_API_KEY")
    ] = None,
    ray_address: Annotated[str | None, typer.Option(help="Also try this Ray cluster; local starts one here.")] = None,
    need: Annotated[
        list[str] | None, typer.Option(help="A line that must be ok, such as nvdec, s3 or images; may be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What works on this machine, each part tried: decoders, GPU, models, and what is asked for besides.

    Exits with 0 unless the base install, or something that was asked for, is missing or broken.
    """
    from dataclasses import asdict

    from jobs.console.output import print_json
    from jobs.errors import OK, SOME_FAILED, UsageError

    if base_url is None and (model or key_env):
        raise UsageError("got --model or --key-env without --base-url; name the endpoint that they are for")
    asked = {"library": library, "chat": base_url, "cluster": ray_address}
    needed = {*ALWAYS, *(need or ()), *(name for name, wanted in asked.items() if wanted is not None)}
    found = look(library, base_url, model, key_env, ray_address)
    failed = not_ok(found, needed)
    if json:
        print_json({"findings": [asdict(each) for each in found], "failed": [each.name for each in failed]})
    else:
        show(found, failed)
    raise typer.Exit(SOME_FAILED if failed else OK)


def look(
    library: str | None, base_url: str | None, model: str | None, key_env: str | None, ray_address: str | None
) -> list[Finding]:
    """All lines of the page."""
    from jobs.doctor.api_keys import keys
    from jobs.doctor.decoders import decoders
    from jobs.doctor.endpoint import endpoint
    from jobs.doctor.gpu import accelerator
    from jobs.doctor.library import shelf
    from jobs.doctor.machine import machine
    from jobs.doctor.models import models
    from jobs.doctor.packages import packages
    from jobs.doctor.ray import clusters

    found = [*machine(), *packages(), *decoders(), *accelerator(), *clusters(ray_address), *models(), *keys(key_env)]
    found += endpoint(base_url, model, key_env) if base_url is not None else []
    return found + (shelf(library) if library is not None else [])


def not_ok(found: Sequence[Finding], needed: Collection[str]) -> list[Finding]:
    """Which of the lines that are needed are not ok; raises UsageError for a name that no line has."""
    from jobs.errors import UsageError

    names = list(dict.fromkeys(each.name for each in found))
    if unknown := sorted({*needed}.difference(names)):
        raise UsageError(f"got --need {unknown[0]}; this page has lines for {', '.join(names)}")
    return [each for each in found if each.name in needed and each.state != "ok"]


def show(found: Sequence[Finding], failed: Sequence[Finding]) -> None:
    """The page, for people."""
    from rich.markup import escape

    from jobs.console.output import console

    out, section = console(), None
    width = max(len(each.name) for each in found)
    for each in found:
        if each.section != section:
            out.print(f"\n[bold]{each.section}[/]" if section else f"[bold]{each.section}[/]")
            section = each.section
        state = f"[{COLOURS[each.state]}]{each.state:<7}[/]"
        out.print(f"  {state} {escape(each.name):<{width}}  {escape(each.said)}", soft_wrap=True)
        if each.todo and each.state != "ok":
            out.print(f"  {'':<7} {'':<{width}}  → {escape(each.todo)}", soft_wrap=True, style="dim")
    if failed:
        out.print(f"\n[red]needed, and not ok: {escape(', '.join(each.name for each in failed))}[/]")
    else:
        out.print("\nkinodex works here; a line that is not ok matters only to whoever wants what it names")
