"""`kinodex doctor`: this machine on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.options import JsonOption
from kinodex.index.terminal_text import visible_lines
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, print_json

if TYPE_CHECKING:
    from kinodex.doctor.check_result import CheckResult

ALWAYS = ("base",)
"""Needed by everything."""
COLOURS = {"ok": "green", "missing": "yellow", "broken": "red"}


def doctor(
    library: Annotated[str | None, typer.Argument(help="Also check this library; reads no picture or vector.")] = None,
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
    """Try each part of this machine (decoders, GPU, models), and a library, endpoint or cluster if one is named.

    Exits with 0 unless the base install, or something that was named, is missing or broken.
    """
    from kinodex.doctor.page import failed_needs, run_checks

    if base_url is None and (model or key_env):
        raise UsageError("got --model or --key-env without --base-url; name the endpoint that they belong to")
    optional = {"library": library, "chat": base_url, "cluster": ray_address}
    needed = {*ALWAYS, *(need or ()), *(name for name, value in optional.items() if value is not None)}
    found = run_checks(library, base_url, model, key_env, ray_address)
    failed = failed_needs(found, needed)
    if json:
        print_json({"findings": [asdict(each) for each in found], "failed": [each.name for each in failed]})
    else:
        show(found, failed)
    raise typer.Exit(SOME_FAILED if failed else OK)


def show(found: Sequence[CheckResult], failed: Sequence[CheckResult]) -> None:
    from rich.markup import escape

    out, section = console(), None
    width = max(len(each.name) for each in found)
    for each in found:
        if each.section != section:
            out.print(f"\n[bold]{each.section}[/]" if section else f"[bold]{each.section}[/]")
            section = each.section
        state = f"[{COLOURS[each.state]}]{each.state:<7}[/]"
        out.print(f"  {state} {escape(each.name):<{width}}  {escape(visible_lines(each.said))}", soft_wrap=True)
        if each.todo and each.state != "ok":
            out.print(f"  {'':<7} {'':<{width}}  → {escape(each.todo)}", soft_wrap=True, style="dim")
    if failed:
        out.print(f"\n[red]needed, and not ok: {escape(', '.join(each.name for each in failed))}[/]")
    else:
        out.print("\nall that was named is ok; of the other lines those matter that your task needs")
