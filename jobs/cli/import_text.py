"""`kinodex import captions|transcript`: text made elsewhere, for videos of a library or instead of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobs.cli.options.library import JsonOption

if TYPE_CHECKING:
    from index.library import Library
    from jobs.text_import.run import ImportResult
    from jobs.text_import.stage import Kind
    from jobs.text_import.types import ReadResult

app = typer.Typer(
    help="Bring captions or transcripts that were made elsewhere into a library. A video that it lacks is made of its "
    "text alone. Run again, it does only what is new.",
    no_args_is_help=True,
)
SourceArgument = Annotated[Path, typer.Argument(help="A file, a folder, or a zip archive of files.")]
ToLibraryArgument = Annotated[str, typer.Argument(metavar="LIBRARY", help="The library; made if there is none.")]
SpaceOption = Annotated[
    str | None, typer.Option(help="Embedding space of a library that is made, as for `kinodex ingest`.")
]
DurationOption = Annotated[
    float | None,
    typer.Option(
        min=0.001, help="Length of videos that the library lacks, in seconds. Default: until their text ends."
    ),
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Also for videos that have text by this model: the new one takes its place.")
]


class _Into(NamedTuple):
    """Target of an import: the library, and settings to make it and its videos if they do not exist."""

    uri: str
    space: str | None
    duration_s: float | None
    replaces: bool


@app.command()
def captions(
    source: SourceArgument,
    library: ToLibraryArgument,
    model: Annotated[str, typer.Option("--model", help='Who wrote them, such as "lavila".')],
    seconds: Annotated[float, typer.Option(min=0.001, help="Length of a caption that has no end.")] = 1.0,
    duration: DurationOption = None,
    space: SpaceOption = None,
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Import captions: JSON of a list of captions a video, JSON of captions by second a file a video, or JSON lines."""
    from jobs.text_import.captions import read_captions

    settings = {"source": source.name, "seconds": seconds}
    read = read_captions(source, seconds)
    _run("captions", model, source, read, settings, _Into(library, space, duration, replace), json)


@app.command()
def transcript(
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
    duration: DurationOption = None,
    space: SpaceOption = None,
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Import speech: SRT or VTT files named after videos, LongVideoBench's or LongTVQA's JSON, or JSON lines."""
    from jobs.text_import.longvideobench import read_cuts
    from jobs.text_import.transcripts import read_transcripts

    known = read_cuts(cuts) if cuts else {}
    settings = {"source": source.name, "clip_seconds": clip_seconds, "cuts": cuts and cuts.name}
    read = read_transcripts(source, clip_seconds, known)
    _run("speech", model, source, read, settings, _Into(library, space, duration, replace), json)


def _run(
    kind: Kind,
    model: str,
    source: Path,
    read: Iterable[ReadResult],
    settings: dict[str, Any],
    into: _Into,
    as_json: bool,
) -> None:
    from jobs.console.add_progress import add_progress_bar
    from jobs.console.output import error_console
    from jobs.errors import OK, SOME_FAILED, UsageError
    from jobs.text_import.run import import_text

    if not model.strip():
        raise UsageError("got an empty --model; give the name of who wrote the text")
    if inf in (into.duration_s, *settings.values()):
        raise UsageError("got a length without an end; give a number of seconds")
    texts = _checked(list(read), into.duration_s)
    library = _library(into.uri, into.space)
    with add_progress_bar(error_console(), kind) as watch:
        imported = import_text(library, kind, model, str(source.absolute()), texts, settings, into.replaces, watch)
    _show(imported, as_json)
    raise typer.Exit(SOME_FAILED if imported.report.failed else OK)


def _checked(texts: list[ReadResult], duration_s: float | None) -> list[ReadResult]:
    """Check that a text can be used, and set the duration if one is given."""
    from dataclasses import replace

    from jobs.errors import UsageError
    from jobs.text_import.types import ReadFailure, VideoText

    bad = [each for each in texts if isinstance(each, ReadFailure)]
    if len(bad) == len(texts):
        raise UsageError(bad[0].message)
    if duration_s is None:
        return texts
    return [replace(each, duration_s=duration_s) if isinstance(each, VideoText) else each for each in texts]


def _library(uri: str, space: str | None) -> Library:
    from index.embedding.model_source import DEFAULT_SPACE
    from index.embedding.space import load_space
    from index.library import Library
    from jobs.carry_towers import carry_or_note, print_notes
    from jobs.ingest.config import library_settings
    from pipeline.sampling.sample import IngestSettings

    if Library.exists(uri):
        library = Library.open(uri)
        if space is not None and space != library.space_name:
            library.check_space(load_space(space, towers="text").fingerprint)
        return library
    fingerprint = load_space(space or DEFAULT_SPACE, towers="text").fingerprint
    library = Library.create(uri, library_settings(IngestSettings()), fingerprint)
    print_notes(carry_or_note(library, fingerprint, ["text"]))
    return library


def _show(imported: ImportResult, as_json: bool) -> None:
    from jobs.cli.add.report import report_json, show_report
    from jobs.console.output import console, print_json

    counts = {"new_videos": imported.made, "left_out": imported.left_out}
    if as_json:
        print_json(report_json(imported.report) | counts)
        return
    show_report(imported.report)
    known = f"{imported.left_out:,} left out, which had it before" if imported.left_out else ""
    made = f"{imported.made:,} videos are new, known by their text alone" if imported.made else ""
    if known or made:
        console().print("; ".join(filter(None, [made, known])))
