"""`kinodex maintain`: clean up a library, or only check it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.addresses import show_addresses
from kinodex.cli.options import JsonOption, LibraryArgument, open_library
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, plain_table, print_json, tell_step

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kinodex.index.maintain import Health, Upkeep
    from kinodex.index.repair import Repair
    from kinodex.index.sweep import Audit

PROBLEMS_LISTED = 20
MINUTE_S = 60.0
LEAST_KEEP_MINUTES = 1.0
MOST_KEEP_MINUTES = 60.0 * 24 * 365 * 10


def maintain(
    library: LibraryArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Only check, and list what there is to do; writes nothing.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every picture and vector, and find what was damaged on the disk.")
    ] = False,
    keep_minutes: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=MOST_KEEP_MINUTES,
            help="How long older states of tables are kept for their readers. 0 only if nobody uses the library.",
        ),
    ] = 60.0,
    purge: Annotated[
        bool, typer.Option("--purge", help="Rewrite files and indexes, so that they hold nothing that was removed.")
    ] = False,
    discard_broken: Annotated[
        bool,
        typer.Option("--discard-broken", help="Delete videos and additions with lost or altered rows, to add again."),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Make tables that are missing again, from what is left, and say what is lost."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove leftovers of interrupted runs, join files, refresh indexes, check that no row is missing or altered.

    Safe while others ingest or read. Exits with 3 if something is still wrong that no run at work explains. With
    --check addresses at which no file lies any more are listed too.
    """
    from kinodex.index.maintain import health as check_health
    from kinodex.index.maintain import maintain as maintain_library

    given = {"--check": check, "--repair": repair, "--discard-broken": discard_broken, "--purge": purge}
    names = [name for name, is_given in given.items() if is_given]
    if (check or repair) and len(names) > 1:
        raise UsageError(f"got {names[0]}, which deletes nothing, with {names[1]}; leave one of them out")
    if 0 < keep_minutes < LEAST_KEEP_MINUTES:
        raise UsageError(
            f"got --keep-minutes {keep_minutes:g}, too short for others who are reading; give {LEAST_KEEP_MINUTES:g} "
            "or more, or 0 if nobody uses the library"
        )
    repaired = _repair(library) if repair else None
    opened = open_library(library)
    keep_s = keep_minutes * MINUTE_S
    upkeep = None if check or repair else maintain_library(opened, keep_s, discard_broken, purge, tell_step, deep)
    health = check_health(opened, deep) if upkeep is None else upkeep.after
    addresses = None
    if check and not any(each.altered for each in health.audit.keyed):  # else addresses may be other ones
        from kinodex.jobs.addresses.states import check_addresses

        addresses = check_addresses(opened)
    if json:
        plain = _plain(opened.uri, health, upkeep, repaired)
        print_json(plain if addresses is None else plain | {"addresses": asdict(addresses)})
    else:
        _show(opened.uri, health, upkeep, repaired, deep, console())
        if addresses is not None and (addresses.gone or addresses.unknown):
            show_addresses(opened.uri, addresses, console())
    raise typer.Exit(SOME_FAILED if health.problems or (repaired and repaired.lost) else OK)


def _repair(uri: str) -> Repair:
    from kinodex.index.repair import repair as repair_library
    from kinodex.jobs.library import read_facts
    from kinodex.pipeline.sample import IngestSettings

    return repair_library(uri, asdict(IngestSettings()), read_facts)


def _plain(uri: str, health: Health, upkeep: Upkeep | None, repaired: Repair | None) -> dict[str, Any]:
    result: dict[str, Any] = {"uri": uri, "problems": health.problems, "health": asdict(health)}
    if upkeep is not None:
        before = {"data_bytes": upkeep.before.data_bytes, "disk_bytes": upkeep.before.disk_bytes}
        result |= {"before": before, "removed": asdict(upkeep.removed), "notes": upkeep.notes}
    return result if repaired is None else result | {"repaired": asdict(repaired)}


def _show(uri: str, health: Health, upkeep: Upkeep | None, repaired: Repair | None, deep: bool, out: Console) -> None:
    from rich.markup import escape

    if repaired is not None:
        made = ", ".join(repaired.made) or "no table"
        out.print(f"made again: {made}; {len(repaired.videos):,} rows of videos", soft_wrap=True)
        for line in repaired.lost:
            out.print(escape(f"lost: {line}"), soft_wrap=True)
    out.print(f"{escape(uri)}: {health.audit.videos:,} videos", soft_wrap=True)
    for each in health.at_work:
        out.print(escape(f"{'ended without reporting it' if each.is_dead else 'at work'}: {each}"), soft_wrap=True)
    out.print(_sizes(health if upkeep is None else upkeep.before, health))
    for line in _removed(upkeep.removed) if upkeep is not None else ():
        out.print(escape(f"removed: {line}"), soft_wrap=True)
    for note in upkeep.notes if upkeep is not None else ():
        out.print(escape(f"note: {note}"), soft_wrap=True)
    undigested = {"videos": health.audit.unchecked, "additions": health.audit.added.unchecked}
    if any(undigested.values()):
        counts = " and ".join(f"{count:,} {what}" for what, count in undigested.items() if count)
        out.print(
            f"not checked: the values of {counts}, which a repair wrote without digests; a new library has them",
            soft_wrap=True,
        )
    if not health.problems:
        is_in_use = any(not each.is_dead for each in health.at_work)
        but = "apart from what runs at work may be writing, " if is_in_use else ""
        out.print(
            f"{but}every row belongs to a complete video or addition, and each of these has all its rows"
            f"{', with the values that were written' if not any(undigested.values()) else ''}"
        )
        return
    out.print(f"[red]{len(health.problems):,} wrong:[/]")
    for problem in health.problems[:PROBLEMS_LISTED]:
        out.print(escape(f"  {problem}"), soft_wrap=True)
    if len(health.problems) > PROBLEMS_LISTED:
        out.print(f"  and {len(health.problems) - PROBLEMS_LISTED:,} more; --json has all")
    out.print(escape(_advice(uri, health.audit, deep)), soft_wrap=True)


def _sizes(before: Health, after: Health) -> Table:
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
    of_videos = {
        "leftovers of videos that were never completed": gone.orphans,
        "duplicate rows of videos": gone.doubled,
        "broken videos, to be ingested again": gone.broken,
        "videos with damaged pictures, to be ingested again": gone.damaged,
        "videos with altered values, to be ingested again": {id_ for each in gone.altered for id_ in each.video_ids},
    }
    leftovers = {f"leftovers of {each.stage} by {each.model}, of videos": each for each in gone.added.leftovers}
    broken = {f"broken {each.stage} by {each.model}, to be added again, of videos": each for each in gone.added.broken}
    counts = {line: len(ids) for line, ids in of_videos.items() if ids}
    counts |= {line: len(each.video_ids) for line, each in (leftovers | broken).items()}
    for each in gone.keyed:
        counts |= {f"second rows of a key in {each.table}": len(each.doubled)} if each.doubled else {}
        counts |= {f"altered rows of {each.table}": len(each.altered)} if each.altered else {}
    return [f"{line}: {count:,}" for line, count in counts.items()]


def _advice(uri: str, found: Audit, deep: bool) -> str:
    altered = any(each.altered for each in found.keyed)
    if found.damaged or found.altered or found.broken or found.added.broken or altered:
        how = "--deep --discard-broken" if deep else "--discard-broken"
        return f"`kinodex maintain {uri} {how}` deletes what lost rows or has altered ones; then ingest or add it again"
    return f"`kinodex maintain {uri}` removes them"
