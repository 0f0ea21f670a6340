"""`kinodex clean`: caches and old traces that kinodex keeps on this machine outside of libraries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kinodex.cli.options import JsonOption
from kinodex.output import console, plain_table, print_json, say


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
