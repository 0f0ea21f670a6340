"""`kinodex import captions` and `kinodex import speech`: text made elsewhere, for videos of a library, or alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.cli.from_models import with_groups
from kinodex.cli.meant import Group
from kinodex.cli.options import JsonOption
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, error_console, print_json

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.jobs.text_import.addition import Kind
    from kinodex.jobs.text_import.run import ImportResult
    from kinodex.jobs.text_import.video_text import ReadResult

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
    from kinodex.jobs.text_import.captions import read_captions

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
    from kinodex.jobs.text_import.longvideobench import read_cuts
    from kinodex.jobs.text_import.transcripts import read_transcripts

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
    from kinodex.cli.progress_bars import add_progress_bar
    from kinodex.jobs.text_import.run import import_text

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
    from kinodex.jobs.text_import.video_text import ReadFailure, VideoText

    bad = [each for each in texts if isinstance(each, ReadFailure)]
    if len(bad) == len(texts):
        raise UsageError(bad[0].message)
    if duration_s is None:
        return texts
    return [replace(each, duration_s=duration_s) if isinstance(each, VideoText) else each for each in texts]


def _library(uri: str, space: str | None) -> Library:
    from kinodex.index.library import Library
    from kinodex.index.spaces.fingerprint import NO_SPACE, Fingerprint
    from kinodex.index.spaces.load import load_text_tower
    from kinodex.jobs.default_space import default_space
    from kinodex.jobs.towers.carried import carry_or_note, log_notes
    from kinodex.pipeline.sample import IngestSettings

    def fingerprint_of(name: str) -> Fingerprint:
        return NO_SPACE if name == NO_SPACE.name else load_text_tower(name).fingerprint

    if Library.exists(uri):
        library = Library.open(uri)
        if space is not None and space != library.space_name:
            library.check_space(fingerprint_of(space))
        return library
    fingerprint = fingerprint_of(space or default_space(uri))
    library = Library.create(uri, asdict(IngestSettings()), fingerprint)
    if fingerprint.has_vectors:
        log_notes(carry_or_note(library, fingerprint, ["text"]))
    return library


def _show_import(imported: ImportResult, as_json: bool) -> None:
    from kinodex.cli.add.report import report_json, show_report

    counts = {"new_videos": imported.made, "left_out": imported.left_out}
    if as_json:
        print_json(report_json(imported.report) | counts)
        return
    show_report(imported.report)
    known = f"{imported.left_out:,} left out, which had it before" if imported.left_out else ""
    made = f"{imported.made:,} videos are new, known only by their text" if imported.made else ""
    if known or made:
        console().print("; ".join(filter(None, [made, known])))
