"""`kinodex maintain`: a library kept in good order, or only looked at."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.options.library import JsonOption, LibraryArgument

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from index.maintenance.maintain import Health, Upkeep
    from index.maintenance.sweep import Audit

LISTED = 20
MINUTE_S = 60.0
LEAST_KEEP_MINUTES = 1.0


def maintain(
    library: LibraryArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Only look, and say what there is to do; writes nothing.")
    ] = False,
    keep_minutes: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Older states of tables stay so long, for whoever is reading one. 0 only if nobody uses the library.",
        ),
    ] = 60.0,
    purge: Annotated[
        bool, typer.Option("--purge", help="Write files and indexes anew, so that nothing removed is left in them.")
    ] = False,
    discard_broken: Annotated[
        bool, typer.Option("--discard-broken", help="Delete videos and additions that lost rows, to be made anew.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove what interrupted runs left, join files, refresh indexes, and check that all rows are there.

    Safe beside ingest and reading. Exits with 3 if something is wrong in the end that no run at work explains.
    """
    from index.library import Library
    from jobs.console.output import console, print_json
    from jobs.errors import OK, SOME_FAILED, UsageError

    if check and (discard_broken or purge):
        other = "--purge" if purge else "--discard-broken"
        raise UsageError(f"got --check, which deletes nothing, with {other}; leave one of them out")
    if 0 < keep_minutes < LEAST_KEEP_MINUTES:
        raise UsageError(
            f"got --keep-minutes {keep_minutes:g}, too short for what others are reading; give {LEAST_KEEP_MINUTES:g} "
            "or more, or 0 if nobody uses the library"
        )
    opened = Library.open(library)
    done = None if check else opened.maintain(keep_minutes * MINUTE_S, discard_broken, purge, _tell)
    health = opened.health() if done is None else done.after
    if json:
        print_json(_plain(opened.uri, health, done))
    else:
        _show(opened.uri, health, done, console())
    raise typer.Exit(SOME_FAILED if health.problems else OK)


def _tell(step: str) -> None:
    print(f"{step} ...", file=sys.stderr, flush=True)


def _plain(uri: str, health: Health, done: Upkeep | None) -> dict[str, Any]:
    from dataclasses import asdict

    told: dict[str, Any] = {"uri": uri, "problems": health.problems, "health": asdict(health)}
    if done is not None:
        before = {"data_bytes": done.before.data_bytes, "disk_bytes": done.before.disk_bytes}
        told |= {"before": before, "removed": asdict(done.removed), "notes": done.notes}
    return told


def _show(uri: str, health: Health, done: Upkeep | None, out: Console) -> None:
    from rich.markup import escape

    out.print(f"{escape(uri)}: {health.audit.videos:,} videos", soft_wrap=True)
    for each in health.at_work:
        out.print(escape(f"{'ended without saying so' if each.is_dead else 'at work'}: {each}"), soft_wrap=True)
    out.print(_sizes(health if done is None else done.before, health))
    for line in _removed(done.removed) if done is not None else ():
        out.print(escape(f"removed: {line}"), soft_wrap=True)
    for note in done.notes if done is not None else ():
        out.print(escape(f"note: {note}"), soft_wrap=True)
    if not health.problems:
        but = "but for what runs at work may be writing, " if any(not each.is_dead for each in health.at_work) else ""
        out.print(f"{but}every row belongs to a complete video or addition, and each of these has all its rows")
        return
    out.print(f"[red]{len(health.problems):,} wrong:[/]")
    for problem in health.problems[:LISTED]:
        out.print(escape(f"  {problem}"), soft_wrap=True)
    if len(health.problems) > LISTED:
        out.print(f"  and {len(health.problems) - LISTED:,} more; --json has all")
    out.print(escape(_advice(uri, health.audit)), soft_wrap=True)


def _sizes(before: Health, after: Health) -> Table:
    """The tables as they were and are; one figure where nothing changed."""
    from jobs.console.output import plain_table

    table = plain_table("table", "rows", "in use", "on disk", "fragments", "versions", "indexes", "rows new to them")
    for column in table.columns[1:]:
        column.justify = "right"
    was = {each.name: each for each in before.tables}
    for now in after.tables:
        then = was.get(now.name, now)
        unindexed = [max((index.unindexed_rows for index in each.indexes), default=0) for each in (then, now)]
        table.add_row(
            now.name,
            _change(f"{then.rows:,}", f"{now.rows:,}"),
            _change(_size(then.data_bytes), _size(now.data_bytes)),
            _change(_size(then.disk_bytes), _size(now.disk_bytes)),
            _change(str(then.fragments), str(now.fragments)),
            _change(str(then.versions), str(now.versions)),
            _change(str(len(then.indexes)), str(len(now.indexes))),
            _change(*(f"{rows:,}" for rows in unindexed)),
        )
    data = _change(_size(before.data_bytes), _size(after.data_bytes))
    table.add_row("all", "", data, _change(_size(before.disk_bytes), _size(after.disk_bytes)), style="bold")
    return table


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _size(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.2f} MB"


def _removed(gone: Audit) -> list[str]:
    """What maintenance deleted, in words."""
    of_videos = {
        "leftovers of videos that were never completed": gone.orphans,
        "rows that were there twice, of videos": gone.doubled,
        "broken videos, to be ingested again": gone.broken,
    }
    leftovers = {f"leftovers of {each.stage} by {each.model}, of videos": each for each in gone.added.leftovers}
    broken = {f"broken {each.stage} by {each.model}, to be added again, of videos": each for each in gone.added.broken}
    counts = {line: len(ids) for line, ids in of_videos.items() if ids}
    counts |= {line: len(each.video_ids) for line, each in (leftovers | broken).items()}
    return [f"{line}: {count:,}" for line, count in counts.items()]


def _advice(uri: str, found: Audit) -> str:
    broken = found.broken or found.added.broken
    if broken:
        return f"`kinodex maintain {uri} --discard-broken` deletes what lost rows; then ingest or add it again"
    return f"`kinodex maintain {uri}` removes them"
