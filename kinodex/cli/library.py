"""`kinodex info`, `set`, `remove`, `maintain`, `relocate`, `import`: look at a library, and change what it holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.from_models import with_groups
from kinodex.cli.meant import Group
from kinodex.cli.options import JsonOption, LibraryArgument, VideoOption, WhereOption, open_library
from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.index.times import clock
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, error_console, plain_table, print_json, say, tell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kinodex.index.library import Library
    from kinodex.index.maintain import Health, Upkeep
    from kinodex.index.repair import Repair
    from kinodex.index.rows import AddedFacts
    from kinodex.index.sweep import Audit
    from kinodex.jobs.add.import_text import ImportResult, Kind
    from kinodex.jobs.add.text_files import ReadResult
    from kinodex.jobs.addresses import AddressCheck


def info(
    library: LibraryArgument,
    where: WhereOption = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many videos and so many failures; 0: all.")] = 100,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show the runs that wrote it: results, durations, the time of each stage.")
    ] = False,
    run: Annotated[str | None, typer.Option(help="Show this run: its id, or its first digits.")] = None,
    json: JsonOption = False,
) -> None:
    """Show a library: videos, counts, columns, spaces, settings, failures; or the runs that wrote it."""
    opened = open_library(library, where)
    if runs or run is not None:
        from kinodex.cli.show import show_runs

        show_runs(opened, run, as_json=json)
    else:
        from kinodex.cli.tables import show_library

        show_library(opened, limit or None, as_json=json)


# `kinodex set metadata`: columns about the videos of a library that is there.

set_app = typer.Typer(cls=Group, no_args_is_help=True, help="Set columns about the videos of a library, for --where.")


@set_app.callback()
def _set() -> None:
    """Keep `metadata` a command of its own: a group of one command would be that command."""


@set_app.command()
def metadata(
    library: LibraryArgument,
    table: Annotated[
        list[str] | None,
        typer.Argument(help="Tables (.csv, .tsv, .jsonl, .parquet): a column names videos, the others are set."),
    ] = None,
    path_pattern: Annotated[str | None, typer.Option(help="Columns from paths, such as '{camera}/{day}/{_}'.")] = None,
    from_files: Annotated[
        bool, typer.Option("--from-files", help="Columns from the tags of the files, and .info.json beside them.")
    ] = False,
    drop: Annotated[list[str] | None, typer.Option(help="Remove this column first. May be repeated.")] = None,
    video: VideoOption = None,
    where: WhereOption = None,
    json: JsonOption = False,
) -> None:
    """Set columns of the videos, for --where: from tables, paths and tags of files. Nothing is ingested again."""
    from kinodex.cli.show import show_metadata
    from kinodex.jobs.metadata import read_metadata, set_metadata

    opened = open_library(library)
    given = read_metadata(table or [], path_pattern)
    if not (given or from_files or drop):
        raise UsageError("got nothing to set; give tables, --path-pattern, --from-files or --drop")
    chosen = opened.select(video or (), where)
    if drop:
        opened.metadata.drop(drop)
    report = set_metadata(opened, given, chosen, from_files=from_files)
    if json:
        print_json(asdict(report))
    else:
        show_metadata(asdict(report))
    raise typer.Exit(SOME_FAILED if report.unmatched or report.ambiguous or report.problems else OK)


# `kinodex remove`: remove videos, the rows that a model added to them, or voices, from a library.

remove_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Remove videos from a library, the rows that a model added, or voices. `kinodex maintain` frees their space "
    "later, `kinodex maintain --purge` all of it.",
)
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
LISTED = 10


@remove_app.command()
def videos(
    library: LibraryArgument,
    video: Annotated[list[str], typer.Argument(help="A video: id (or its first digits), title, file, URI, or a glob.")],
    yes: YesOption = False,
) -> None:
    """Remove videos with their frames, vectors, texts and detections. Their files stay as they are.

    An ingest of the same files indexes them again.
    """
    from kinodex.index.remove import remove_videos

    opened = open_library(library)
    rows = opened.videos_named(video, whole_name=True)  # what is deleted is not guessed
    for row in rows[:LISTED]:
        say(f"{row.video_id[:12]}  {visible(row.title)}: {row.frames:,} frames of {clock(row.duration_s)}")
    if len(rows) > LISTED:
        say(f"and {len(rows) - LISTED:,} more")
    _confirm(f"Remove {counted(len(rows), 'video')} from {opened.uri}?", yes)
    remove_videos(opened, *(row.video_id for row in rows))
    say(f"{counted(len(rows), 'video')} removed, {len(opened.video_ids()):,} left")


@remove_app.command()
def added(
    library: LibraryArgument,
    stage: Annotated[
        str,
        typer.Argument(help="What was added, by the name of its `kinodex add` command; else extracts or notes."),
    ],
    model: Annotated[str, typer.Argument(help="Its name in `kinodex info`; for vectors and sentences a digest.")],
    video: VideoOption = None,
    yes: YesOption = False,
) -> None:
    """Remove the rows that a model added: what `kinodex add` made, such as captions, or notes of agents."""
    from kinodex.index.remove import remove_added

    opened = open_library(library)
    before = _facts(opened, stage, model)
    ids = [row.video_id for row in opened.videos_named(video, whole_name=True)] if video else sorted(opened.video_ids())
    of = f" of {counted(len(ids), 'video')}" if video else ""
    _confirm(f"Remove {stage} by {model}{of} from {opened.uri} ({before.rows:,} in {before.videos:,} videos)?", yes)
    remove_added(opened, stage, model, *ids)
    after = next((each for each in opened.info().added if (each.stage, each.model) == (stage, model)), None)
    say(f"{before.rows - (after.rows if after else 0):,} {stage} removed")


@remove_app.command()
def speaker(
    library: LibraryArgument,
    speaker: Annotated[list[str], typer.Argument(help="A voice, such as speaker-3, or its name.")],
    yes: YesOption = False,
) -> None:
    """Forget voices and their names. What they said stays, by "speaker 3"; the voice is not known again.

    Their videos' own speech goes with `kinodex remove added LIBRARY speech MODEL`.
    """
    opened = open_library(library)
    rows = {row.speaker: row for each in speaker for row in opened.speakers.find(each)}
    for row in rows.values():
        say(f"{row.speaker}  {visible(row.name or '(no name)')}")
    _confirm(f"Forget {counted(len(rows), 'voice')} of {opened.uri}?", yes)
    opened.speakers.forget([*rows])
    say(f"{counted(len(rows), 'voice')} forgotten, {len(opened.speakers.rows()):,} left")


def _facts(library: Library, stage: str, model: str) -> AddedFacts:
    held = library.info().added
    found = next((each for each in held if (each.stage, each.model) == (stage, model)), None)
    if found is None:
        what = ", ".join(f"{each.stage} {each.model}" for each in held) or "nothing"
        raise UsageError(f"got {stage} {model}, which {library.uri} does not hold; added to it: {what}")
    return found


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; give --yes")
    if not typer.confirm(question):
        raise typer.Exit(OK)


# `kinodex maintain`: clean up a library, or only check it.

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
    upkeep = None if check or repair else maintain_library(opened, keep_s, discard_broken, purge, _tell, deep)
    health = check_health(opened, deep) if upkeep is None else upkeep.after
    addresses = None
    if check and not any(each.altered for each in health.audit.keyed):  # else addresses may be other ones
        from kinodex.jobs.addresses import check_addresses

        addresses = check_addresses(opened)
    if json:
        plain = _plain(opened.uri, health, upkeep, repaired)
        print_json(plain if addresses is None else plain | {"addresses": asdict(addresses)})
    else:
        _show(opened.uri, health, upkeep, repaired, deep, console())
        if addresses is not None and (addresses.gone or addresses.unknown):
            _show_addresses(opened.uri, addresses, console())
    raise typer.Exit(SOME_FAILED if health.problems or (repaired and repaired.lost) else OK)


def use_space(
    library: LibraryArgument,
    space: Annotated[str, typer.Argument(help="A space that `kinodex add vectors` added: its name or digest.")],
    json: JsonOption = False,
) -> None:
    """Make an added space the library's own: all queries, and later ingests, go there at once.

    The old vectors stay, as an added space, until `kinodex remove added LIBRARY vectors OLD`.
    """
    from kinodex.index.change_space import use_space as change_space

    changed = change_space(open_library(library), space, on_step=_tell)
    if json:
        print_json(asdict(changed))
        return
    out = console()
    out.print(f"the space of {library} is {changed.space}; before it was {changed.before}", markup=False)
    if changed.before_digest != changed.space_digest:
        command = f"kinodex remove added {library} vectors {changed.before_digest}"
        out.print(f"its old vectors are kept; `{command}` removes them", markup=False)
    if changed.note:
        tell(changed.note)


def _repair(uri: str) -> Repair:
    from kinodex.index.repair import repair as repair_library
    from kinodex.jobs.library import read_facts
    from kinodex.pipeline.sample import IngestSettings

    return repair_library(uri, asdict(IngestSettings()), read_facts)


def _tell(step: str) -> None:
    tell(f"{step} ...")


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
            f"not checked: the values of {counts}, which an earlier kinodex, or a repair, wrote without digests; a new "
            "library has them",
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


def _show_addresses(uri: str, found: AddressCheck, out: Console) -> None:
    """List addresses at which no file lies any more, and count those of which nothing is known."""
    from rich.markup import escape

    from kinodex.jobs.addresses import relocate_command

    for name, some in (("gone", found.gone), ("not known to be there", found.unknown)):
        if some:
            out.print(f"files {name}: {len(some):,} of {counted(found.looked_at, 'video')}", soft_wrap=True)
        for each in some[:LISTED]:
            out.print(escape(f"  {visible(each.uri)}{f': {each.why}' if each.why else ''}"), soft_wrap=True)
        if len(some) > LISTED:
            out.print(f"  and {len(some) - LISTED:,} more; --json has all")
    if found.gone:
        out.print(escape(f"if they were moved: `{relocate_command(uri, found.gone[0].uri)}`"), soft_wrap=True)


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


def relocate(
    library: LibraryArgument,
    old: Annotated[str, typer.Argument(help="Where they were: a folder, a file, s3://BUCKET/FOLDER or https://HOST.")],
    new: Annotated[str, typer.Argument(help="Where the same files are by now.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    json: JsonOption = False,
) -> None:
    """Say where moved files are by now: the addresses of all videos under OLD become those under NEW.

    Nothing is read or indexed again. Without a common prefix `kinodex ingest` knows moved files by their bytes.
    """
    from kinodex.jobs.addresses import relocate as relocate_videos

    opened = open_library(library)
    done = relocate_videos(opened, old, new, dry_run=dry_run)
    if json:
        print_json({"uri": opened.uri, **asdict(done)})
        return
    for each in done.videos[:LISTED]:
        say(f"{each.video_id[:12]}  {visible(each.old_uri)} -> {visible(each.new_uri)}")
    if len(done.videos) > LISTED:
        say(f"and {len(done.videos) - LISTED:,} more; --json has all")
    would = "would be relocated" if dry_run else "relocated"
    say(f"{counted(len(done.videos), 'video')} {would}; {counted(done.other_places, 'other place')} of files too")
    say(f"at the new addresses: {done.there:,} there, {done.gone:,} gone, {done.unknown:,} not known")


# `kinodex import captions|speech`: text made elsewhere, for videos of a library or instead of them.

import_app = typer.Typer(
    cls=Group,
    help="Bring captions or transcripts that were made elsewhere into a library. A video that it lacks is made of its "
    "text alone. Run again, it does only what is new.",
    no_args_is_help=True,
)
SourceArgument = Annotated[Path, typer.Argument(help="A file, a folder, or a zip archive of files.")]
ToLibraryArgument = Annotated[str, typer.Argument(metavar="LIBRARY", help="The library; made if there is none.")]


@dataclass(frozen=True)
class Target:
    """The video and library that an import makes, and the text that it replaces, for `with_groups`."""

    duration: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Length of videos that the library lacks, in seconds. Default: until their text ends."
        ),
    ] = None
    space: Annotated[
        str | None, typer.Option(help="Embedding space of a library that is made, as for `kinodex ingest`.")
    ] = None
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Also for videos that have text by this model: the new one takes its place."),
    ] = False


AS_IT_IS = Target()


@import_app.command()
@with_groups
def captions(
    source: SourceArgument,
    library: ToLibraryArgument,
    model: Annotated[str, typer.Option("--model", help='Who wrote them, such as "lavila".')],
    seconds: Annotated[float, typer.Option(min=0.001, help="Length of a caption that has no end.")] = 1.0,
    target: Target = AS_IT_IS,
    json: JsonOption = False,
) -> None:
    """Import captions: JSON of a list of captions a video, JSON of captions by second a file a video, or JSON lines."""
    from kinodex.jobs.add.text_files import read_captions

    settings = {"source": source.name, "seconds": seconds}
    read = read_captions(source, seconds)
    _run("captions", model, source, read, settings, library, target, json)


@import_app.command("speech")
@with_groups
def import_speech(
    source: SourceArgument,
    library: ToLibraryArgument,
    model: Annotated[str, typer.Option("--model", help="Who wrote it.")] = "imported",
    clip_seconds: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Length of LongTVQA's clips: their subtitles hold no times, so lines are spread evenly over it.",
        ),
    ] = 60.0,
    cuts: Annotated[
        Path | None,
        typer.Option(help="LongVideoBench's annotations, which say where videos were cut from those of subtitles."),
    ] = None,
    target: Target = AS_IT_IS,
    json: JsonOption = False,
) -> None:
    """Import speech: SRT or VTT files named after videos, LongVideoBench's or LongTVQA's JSON, or JSON lines."""
    from kinodex.jobs.add.text_files import read_cuts, read_transcripts

    known = read_cuts(cuts) if cuts else {}
    settings = {"source": source.name, "clip_seconds": clip_seconds, "cuts": cuts and cuts.name}
    read = read_transcripts(source, clip_seconds, known)
    _run("speech", model, source, read, settings, library, target, json)


def _run(
    kind: Kind,
    model: str,
    source: Path,
    read: Iterable[ReadResult],
    settings: dict[str, Any],
    uri: str,
    target: Target,
    as_json: bool,
) -> None:
    from kinodex.cli.show import add_progress_bar
    from kinodex.jobs.add.import_text import import_text

    if not model.strip():
        raise UsageError("got an empty --model; give the name of who wrote the text")
    if inf in (target.duration, *settings.values()):
        raise UsageError("got a length without an end; give a number of seconds")
    texts = _checked(list(read), target.duration)
    library = _library(uri, target.space)
    with add_progress_bar(error_console(), kind) as watch:
        imported = import_text(library, kind, model, str(source.absolute()), texts, settings, target.replace, watch)
    _show_import(imported, as_json)
    raise typer.Exit(SOME_FAILED if imported.report.failed or imported.report.incomplete else OK)


def _checked(texts: list[ReadResult], duration_s: float | None) -> list[ReadResult]:
    """Check that a text can be used, and set the duration if one is given."""
    from kinodex.jobs.add.text_files import ReadFailure, VideoText

    bad = [each for each in texts if isinstance(each, ReadFailure)]
    if len(bad) == len(texts):
        raise UsageError(bad[0].message)
    if duration_s is None:
        return texts
    return [replace(each, duration_s=duration_s) if isinstance(each, VideoText) else each for each in texts]


def _library(uri: str, space: str | None) -> Library:
    from kinodex.index.library import Library
    from kinodex.index.spaces.load import load_text_tower
    from kinodex.index.spaces.model_names import DEFAULT_SPACE
    from kinodex.jobs.towers import carry_or_note, log_notes
    from kinodex.pipeline.sample import IngestSettings

    if Library.exists(uri):
        library = Library.open(uri)
        if space is not None and space != library.space_name:
            library.check_space(load_text_tower(space).fingerprint)
        return library
    fingerprint = load_text_tower(space or DEFAULT_SPACE).fingerprint
    library = Library.create(uri, asdict(IngestSettings()), fingerprint)
    log_notes(carry_or_note(library, fingerprint, ["text"]))
    return library


def _show_import(imported: ImportResult, as_json: bool) -> None:
    from kinodex.cli.add import report_json, show_report

    counts = {"new_videos": imported.made, "left_out": imported.left_out}
    if as_json:
        print_json(report_json(imported.report) | counts)
        return
    show_report(imported.report)
    known = f"{imported.left_out:,} left out, which had it before" if imported.left_out else ""
    made = f"{imported.made:,} videos are new, known by their text alone" if imported.made else ""
    if known or made:
        console().print("; ".join(filter(None, [made, known])))
