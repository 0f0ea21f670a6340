"""`kinodex doctor` and `kinodex clean`: this machine on one page, and what kinodex keeps on it outside of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.options import JsonOption
from kinodex.index.terminal_text import visible_lines
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, plain_table, print_json, say

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


def clean(
    gb: Annotated[
        float | None,
        typer.Option(min=0, help="Most GB of each kind that stay.", show_default="KINODEX_KEEP_GB, else 2"),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(min=0, help="Most days that something stays.", show_default="KINODEX_KEEP_DAYS, else 365"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be freed.")] = False,
    json: JsonOption = False,
) -> None:
    """Show cached replies, exported towers and traces of servers, and free what is beyond a size or an age.

    They are kept to these limits anyway, when a model is asked or a server starts. --gb 0 frees all.
    """
    from kinodex.jobs.kept_files import keep_limits, keep_replies, keep_towers, keep_traces
    from kinodex.jobs.models import cache_file
    from kinodex.web.kept_traces import traces_folder

    limits, free = keep_limits(gb, days), not dry_run
    found = [
        keep_replies(cache_file(), limits, free=free),
        keep_towers(limits, free=free),
        keep_traces(traces_folder(), limits, free=free),
    ]
    if json:
        print_json({"limits": asdict(limits), "freed": free, "kept": [asdict(each) for each in found]})
        return
    table = plain_table("what", "number", "MB", "oldest, days", "would be freed" if dry_run else "freed", "where")
    for each in found:
        oldest = "" if each.oldest_days is None else f"{each.oldest_days:.0f}"
        beyond = f"{each.beyond:,}, {each.beyond_bytes / 1e6:,.1f} MB" if each.beyond else "nothing"
        table.add_row(each.kind, f"{each.count:,}", f"{each.bytes / 1e6:,.1f}", oldest, beyond, each.place)
    console().print(table)
    say(f"each kind may take {limits.bytes / 1e9:g} GB, and stays {limits.days:g} days")
