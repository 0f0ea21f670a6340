"""`kinodex export vtt`, `srt`, `edl`, `otio`, `csv` and `jsonl`: moments as one text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options.library import LibraryArgument
from jobs.cli.options.moments import MomentOptions, OutArgument, OverwriteOption, with_moments

if TYPE_CHECKING:
    from jobs.export.moments.moment import Moment

FpsOption = Annotated[
    float | None, typer.Option(help="Frames a second of the edit.", show_default="that of the videos, else 25")
]
DropOption = Annotated[
    bool | None,
    typer.Option("--drop-frame/--non-drop-frame", help="Counting of timecode.", show_default="drop at 29.97 and 59.94"),
]
TitleOption = Annotated[str, typer.Option(help="Title of the edit.")]


@with_moments
def vtt(
    library: LibraryArgument, moments: MomentOptions, out: OutArgument = "-", overwrite: OverwriteOption = False
) -> None:
    """Write WebVTT: subtitles, or chapters (--of chapters). Default: the transcript. Several videos: a folder."""
    from jobs.export.texts.subtitles import vtt_text

    _write_by_video(library, moments, out, vtt_text, ".vtt", overwrite=overwrite)


@with_moments
def srt(
    library: LibraryArgument, moments: MomentOptions, out: OutArgument = "-", overwrite: OverwriteOption = False
) -> None:
    """Write SubRip subtitles. Default: the transcript. Several videos: a folder of files."""
    from jobs.export.texts.subtitles import srt_text

    _write_by_video(library, moments, out, srt_text, ".srt", overwrite=overwrite)


@with_moments
def edl(
    library: LibraryArgument,
    moments: MomentOptions,
    out: OutArgument = "-",
    fps: FpsOption = None,
    drop_frame: DropOption = None,
    title: TitleOption = "kinodex",
    overwrite: OverwriteOption = False,
) -> None:
    """Write an edit decision list (CMX 3600), a cut a moment. Default: the shots."""
    from jobs.export.texts.edl import edl_text
    from jobs.export.texts.text_file import write_text
    from jobs.export.texts.timecode import frame_rate

    chosen = _chosen(library, moments, "shots")
    rate = frame_rate((each.video for each in chosen), fps, drop_frame, standard=True)
    if rate.in_place_of is not None:
        print(f"counted at {rate.fps:.6g} frames a second: no timecode has {rate.in_place_of:.6g}", file=sys.stderr)
    write_text(out, edl_text(chosen, rate, title, _timecodes(library, chosen)), overwrite)


@with_moments
def otio(
    library: LibraryArgument,
    moments: MomentOptions,
    out: OutArgument = "-",
    fps: FpsOption = None,
    title: TitleOption = "kinodex",
    overwrite: OverwriteOption = False,
) -> None:
    """Write a time line of OpenTimelineIO, a clip a moment. Default: the shots."""
    from jobs.export.texts.otio import otio_text
    from jobs.export.texts.text_file import write_text
    from jobs.export.texts.timecode import frame_rate

    chosen = _chosen(library, moments, "shots")
    rate = frame_rate((each.video for each in chosen), fps, drop_frame=None)
    write_text(out, otio_text(chosen, rate, title, _timecodes(library, chosen)), overwrite)


@with_moments
def csv(
    library: LibraryArgument, moments: MomentOptions, out: OutArgument = "-", overwrite: OverwriteOption = False
) -> None:
    """Write a table of moments, which --ranges reads again. Default: the shots."""
    from jobs.export.texts.tables import csv_text
    from jobs.export.texts.text_file import write_text

    write_text(out, csv_text(_chosen(library, moments, "shots")), overwrite)


@with_moments
def jsonl(
    library: LibraryArgument, moments: MomentOptions, out: OutArgument = "-", overwrite: OverwriteOption = False
) -> None:
    """Write moments as JSON lines, which --ranges reads again. Default: the shots."""
    from jobs.export.texts.tables import jsonl_text
    from jobs.export.texts.text_file import write_text

    write_text(out, jsonl_text(_chosen(library, moments, "shots")), overwrite)


def _chosen(library: str, moments: MomentOptions, usual_rows: str) -> list[Moment]:
    from index.library import Library

    return moments.choose(Library.open(library), usual_rows)


def _timecodes(library: str, moments: Sequence[Moment]) -> dict[str, str]:
    """Start time codes of the files that have one, by video id."""
    from index.library import Library
    from jobs.export.media.video_file import edit_facts_of

    facts = edit_facts_of(Library.open(library), (each.video for each in moments))
    return {video_id: each.timecode for video_id, each in facts.items() if each.timecode is not None}


def _write_by_video(
    library: str,
    moments: MomentOptions,
    out: str,
    text: Callable[[Sequence[Moment]], str],
    suffix: str,
    *,
    overwrite: bool,
) -> None:
    """Write the moments of one video to a file, those of several to a file each in a folder that is new or empty."""
    from jobs.errors import UsageError
    from jobs.export.moments.moment import by_video, digest, moment_facts
    from jobs.export.target_folder import target_folder
    from jobs.export.texts.names import distinct, file_stem
    from jobs.export.texts.text_file import STANDARD_OUTPUT, write_text

    groups = list(by_video(_chosen(library, moments, "transcript")).values())
    if len(groups) == 1:
        write_text(out, text(groups[0]), overwrite)
        return
    if out == STANDARD_OUTPUT:
        raise UsageError(f"got moments of {len(groups)} videos; give a folder for a file each, or one --video")
    names = [name + suffix for name in distinct(file_stem(group[0].video.title) for group in groups)]
    texts = [text(group) for group in groups]
    facts = moment_facts([each for group in groups for each in group])
    with target_folder(Path(out), {"files": names, **facts, "texts": digest(texts)}, dict) as target:
        for name, content in zip(names, texts, strict=True):
            target.write_bytes(name, content)
        target.finish(*names)
