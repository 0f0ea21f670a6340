"""`kinodex export`: videos of a library, and moments in them, as files for other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.meant import Group
from kinodex.cli.options import (
    FolderArgument,
    JsonOption,
    LibraryArgument,
    MomentOptions,
    TextFile,
    VideoOption,
    WhereOption,
    open_library,
    time_option,
    with_groups,
)
from kinodex.index.text import counted, visible
from kinodex.jobs.errors import SOME_FAILED, UsageError
from kinodex.output import error_console, print_every, print_json, say, tell

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.rows import StoredFrame, VideoRow
    from kinodex.jobs.export.media import ClipRow, JoinedClip
    from kinodex.jobs.export.moments import Moment

FRAMES_AT_ONCE = 200
"""Frames in memory at a time."""

# `kinodex export label-studio`, `coco` and `fiftyone`: moments and detections as annotations.


@with_groups
def label_studio(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    url_prefix: Annotated[
        str | None,
        typer.Option(help="Address before the name of each video's file, such as /data/local-files/?d=films/."),
    ] = None,
    boxes: Annotated[
        bool, typer.Option(help="Add the detections and the text on screen within the moments as boxes.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Write tasks of Label Studio: tasks.json, and config.xml for its labelling interface. Default: the shots."""
    from kinodex.jobs.export.annotations import export_label_studio

    opened = open_library(library)
    report = export_label_studio(opened, moments.choose(opened, "shots"), folder, url_prefix, boxes)
    text = f"{counted(report.tasks, 'task')}, {counted(report.moments, 'range')}, {report.boxes:,} boxes"
    _show(asdict(report), text, str(folder), as_json=json)


@with_groups
def coco(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    min_score: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least score of a detection.")] = 0.0,
    screen_text: Annotated[bool, typer.Option("--screen-text", help="Text on screen instead of detections.")] = False,
    json: JsonOption = False,
) -> None:
    """Write detections as COCO: annotations.json, and the frames in images/. --label: those of one label alone."""
    from kinodex.jobs.export.annotations import export_coco

    opened = open_library(library)
    chosen = replace(moments, label="").choose(opened, "videos")
    report = export_coco(opened, chosen, folder, moments.label or None, min_score, screen_text)
    found = f"{report.annotations:,} boxes of text" if screen_text else counted(report.annotations, "detection")
    line = f"{found} in {counted(report.images, 'frame')}, {report.categories} labels"
    _show(asdict(report), line, str(folder), as_json=json)


@with_groups
def fiftyone(
    library: LibraryArgument, folder: FolderArgument, moments: MomentOptions, json: JsonOption = False
) -> None:
    """Write moments as a data set that FiftyOne imports (FiftyOneTemporalDetectionDataset). Default: the shots."""
    from kinodex.jobs.export.annotations import export_fiftyone
    from kinodex.jobs.export.media import edit_facts_of

    opened = open_library(library)
    chosen = moments.choose(opened, "shots")
    facts = edit_facts_of(opened, (each.video for each in chosen))
    videos = export_fiftyone(chosen, folder, {video_id: each.times_s for video_id, each in facts.items()})
    text = f"{counted(len(chosen), 'range')} of {counted(videos, 'video')}"
    _show({"videos": videos, "moments": len(chosen)}, text, str(folder), as_json=json)


def _show(report: dict[str, int], text: str, folder: str, as_json: bool) -> None:
    if as_json:
        print_json({"folder": folder, **report})
    else:
        say(f"{text} in {visible(folder)}")


def hf(
    library: LibraryArgument,
    folder: FolderArgument,
    video: VideoOption = None,
    where: WhereOption = None,
    space: Annotated[
        str | None, typer.Option(help="Vectors of this space of the library: a name or digest. Default: its own.")
    ] = None,
    vectors: Annotated[str, typer.Option(help="Numbers of the vectors: float16, float32, or none.")] = "float16",
    shard_frames: Annotated[int, typer.Option(min=1, help="A file holds whole videos of at most so many frames.")] = (
        10_000
    ),
    split: Annotated[str, typer.Option(help="Name of the split.")] = "train",
    json: JsonOption = False,
) -> None:
    """Write frames as a dataset of Hugging Face: Parquet files and a card; `datasets.load_dataset(FOLDER)` opens it.

    Run again after it was interrupted, it goes on with the files that are missing.
    """
    from kinodex.jobs.export.datasets import HfSettings, checked_precision, export_hf

    settings = HfSettings(checked_precision(vectors), shard_frames, split)
    line = print_every(error_console())

    def on_file(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} files after {seconds:.0f} s")

    report = export_hf(open_library(library, where), folder, settings, video or (), space, on_file)
    if json:
        print_json({"folder": str(folder.absolute()), **report._asdict()})
        return
    before = f", {counted(report.files_before, 'file')} of an earlier run kept" if report.files_before else ""
    say(
        f"{counted(report.frames, 'frame')} of {counted(report.videos, 'video')} in {counted(report.files, 'file')}, "
        f"{report.stored_bytes / 1e6:,.1f} MB{before}: load_dataset({visible(str(folder))!r})"
    )


# `kinodex export clips` and `frames`: moments as video files and as pictures.


@with_groups
def clips(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    exact: Annotated[
        bool, typer.Option("--exact", help="Cut to the frame, by encoding again; else at key frames, without loss.")
    ] = False,
    reel: Annotated[
        bool, typer.Option("--reel", help="One file a video, its ranges one after another, cut to the frame.")
    ] = False,
    subtitles: Annotated[bool, typer.Option(help="Add what is said as a text track.")] = True,
    json: JsonOption = False,
) -> None:
    """Cut moments out of the videos' own files, with their sound: a file each, and clips.csv.

    Exits with 3 if some could not be cut; clips.csv says why. Run again after it was interrupted, it goes on.
    """
    from kinodex.jobs.export.media import CutWay, export_clips, export_joined

    opened = open_library(library)
    chosen = moments.choose(opened, None, is_watched=True)
    if reel:
        _show_clips(export_joined(opened, chosen, folder), str(folder), as_json=json)
        return
    line = print_every(error_console())

    def on_clip(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} clips after {seconds:.0f} s")

    rows = export_clips(opened, chosen, folder, CutWay(exact, subtitles), on_clip)
    _show_clips(rows, str(folder), as_json=json)


def _show_clips(clips: Sequence[ClipRow | JoinedClip], folder: str, as_json: bool) -> None:
    failed = [each.error for each in clips if each.error]
    if as_json:
        print_json([asdict(each) for each in clips])
    else:
        say(f"{counted(len(clips) - len(failed), 'clip')} in {visible(folder)}")
    for error, count in Counter(failed).items():
        tell(f"{counted(count, 'clip')} not cut: {error}")
    if failed:
        raise typer.Exit(SOME_FAILED)


AtOption = Annotated[
    list[float] | None, time_option("--at", help="The frame at this time, 90.5 or 1:30.5; may be repeated.")
]
EachOption = Annotated[
    float | None, typer.Option("--every", help="From --from to --to, one frame every so many seconds.")
]
ModeOption = Annotated[
    str, typer.Option(help="With --at: nearest, exact, or shown (the frame on screen at that time).")
]


@with_groups
def frames(
    library: LibraryArgument,
    folder: FolderArgument,
    moments: MomentOptions,
    most: Annotated[int | None, typer.Option(min=1, help="At most so many frames of a moment, evenly spread.")] = None,
    at: AtOption = None,
    every: EachOption = None,
    mode: ModeOption = "nearest",
    json: JsonOption = False,
) -> None:
    """Write stored frames as JPEGs: those of moments, with frames.csv, or those of one video at given times."""
    from kinodex.jobs.export.media import export_frames

    if at or every is not None:
        named, from_s, to_s = moments.video or [], moments.from_s, moments.to_s
        if len(named) != 1:
            raise UsageError("got --at or --every without one video; name it with --video")
        _write_stills(
            open_library(library, moments.where), named[0], at, from_s, to_s, every, mode, folder, as_json=json
        )
        return
    opened = open_library(library)
    rows = export_frames(opened, moments.choose(opened, None), folder, most)
    if json:
        print_json(rows)
    else:
        say(f"{counted(len({row['file'] for row in rows}), 'frame')} in {visible(str(folder))}")


def _write_stills(
    opened: Library,
    video: str,
    at: list[float] | None,
    from_s: float | None,
    to_s: float | None,
    every: float | None,
    mode: str,
    out: Path,
    as_json: bool,
) -> None:
    from kinodex.cli.tables import show_frames

    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    if at and not from_s is to_s is every is None:
        raise UsageError("got both --at and --from, --to or --every; give one of them")
    row = opened.video(video)
    if every is not None:
        at, mode = _times(opened, row, from_s, to_s, every), "shown"
    show_frames(row, _stored(opened, row, at or [], mode), out, as_json=as_json)


def _times(library: Library, row: VideoRow, from_s: float | None, to_s: float | None, every_s: float) -> list[float]:
    """Times in a part of a video, `every_s` apart from its start on."""
    start_s = row.start_s if from_s is None else max(row.start_s, from_s)
    end_s = row.end_s if to_s is None else min(row.end_s, to_s)
    if not start_s < end_s:
        raise UsageError(
            f"got times from {start_s:g} to {end_s:g} s of {row.title}, which has frames from {row.start_s:g} to "
            f"{row.end_s:g} s; the end must be after the start and within the video"
        )
    if not every_s > 0:
        raise UsageError(f"got --every {every_s:g}; give more than 0 seconds")
    import numpy as np

    stored_s = library.vectors(row.video_id).time_s
    if every_s <= np.diff(stored_s).min(initial=np.inf):  # an interval this short meets every frame
        return [start_s, *(time_s for time_s in stored_s.tolist() if start_s < time_s < end_s)]
    # arange may include the end, which is outside
    return [time_s for time_s in np.arange(start_s, end_s, every_s).tolist() if time_s < end_s]


def _stored(library: Library, row: VideoRow, times_s: Sequence[float], mode: str) -> Iterator[StoredFrame]:
    """Frames at some times, each once, `FRAMES_AT_ONCE` in memory at a time."""
    written: set[int] = set()
    for first in range(0, len(times_s), FRAMES_AT_ONCE):
        for frame in library.frames_at(row.video_id, times_s[first : first + FRAMES_AT_ONCE], mode=mode):
            if frame.frame_no not in written:
                written.add(frame.frame_no)
                yield frame


# `kinodex export vtt`, `srt`, `edl`, `otio`, `csv` and `jsonl`: moments as one text.

FpsOption = Annotated[
    float | None, typer.Option(help="Frames a second of the edit.", show_default="that of the videos, else 25")
]
TitleOption = Annotated[str, typer.Option(help="Title of the edit.")]


@with_groups
def vtt(library: LibraryArgument, moments: MomentOptions, file: TextFile) -> None:
    """Write WebVTT: subtitles, or chapters (--of chapters). Default: what is said. Several videos: a folder."""
    from kinodex.jobs.export.texts import vtt_text

    _write_by_video(library, moments, file, vtt_text, ".vtt")


@with_groups
def srt(library: LibraryArgument, moments: MomentOptions, file: TextFile) -> None:
    """Write SubRip subtitles. Default: what is said. Several videos: a folder of files."""
    from kinodex.jobs.export.texts import srt_text

    _write_by_video(library, moments, file, srt_text, ".srt")


@with_groups
def edl(
    library: LibraryArgument,
    moments: MomentOptions,
    file: TextFile,
    fps: FpsOption = None,
    drop_frame: Annotated[
        bool | None,
        typer.Option(
            "--drop-frame/--non-drop-frame", help="Counting of timecode.", show_default="drop at 29.97 and 59.94"
        ),
    ] = None,
    title: TitleOption = "kinodex",
) -> None:
    """Write an edit decision list (CMX 3600), a cut a moment. Default: the shots."""
    from kinodex.jobs.export.edits import edl_text
    from kinodex.jobs.export.frame_rate import frame_rate

    chosen = moments.choose(open_library(library), "shots", is_watched=True)
    rate = frame_rate((each.video for each in chosen), fps, drop_frame, standard=True)
    if rate.in_place_of is not None:
        tell(f"counted at {rate.fps:.6g} frames a second: no timecode has {rate.in_place_of:.6g}")
    file.write(edl_text(chosen, rate, title, _timecodes(library, chosen)))


@with_groups
def otio(
    library: LibraryArgument,
    moments: MomentOptions,
    file: TextFile,
    fps: FpsOption = None,
    title: TitleOption = "kinodex",
) -> None:
    """Write a time line of OpenTimelineIO, a clip a moment. Default: the shots."""
    from kinodex.jobs.export.edits import otio_text
    from kinodex.jobs.export.frame_rate import frame_rate

    chosen = moments.choose(open_library(library), "shots", is_watched=True)
    rate = frame_rate((each.video for each in chosen), fps, drop_frame=None)
    file.write(otio_text(chosen, rate, title, _timecodes(library, chosen)))


@with_groups
def csv(library: LibraryArgument, moments: MomentOptions, file: TextFile) -> None:
    """Write a table of moments, which --ranges reads again. Default: the shots."""
    from kinodex.jobs.export.texts import csv_text

    file.write(csv_text(moments.choose(open_library(library), "shots")))


@with_groups
def jsonl(library: LibraryArgument, moments: MomentOptions, file: TextFile) -> None:
    """Write moments as JSON lines, which --ranges reads again. Default: the shots."""
    from kinodex.jobs.export.texts import jsonl_text

    file.write(jsonl_text(moments.choose(open_library(library), "shots")))


def _timecodes(library: str, moments: Sequence[Moment]) -> dict[str, str]:
    """Start time codes of the files that have one, by video id."""
    from kinodex.jobs.export.media import edit_facts_of

    facts = edit_facts_of(open_library(library), (each.video for each in moments))
    return {video_id: each.timecode for video_id, each in facts.items() if each.timecode is not None}


def _write_by_video(
    library: str, moments: MomentOptions, file: TextFile, text: Callable[[Sequence[Moment]], str], suffix: str
) -> None:
    """Write the moments of one video to a file, those of several to a file each in a folder that is new or empty."""
    from kinodex.jobs.export.moments import by_video, digest, moment_facts, target_folder
    from kinodex.jobs.export.texts import STANDARD_OUTPUT, distinct, file_stem

    groups = list(by_video(moments.choose(open_library(library), "transcript", is_watched=True)).values())
    if len(groups) == 1:
        file.write(text(groups[0]))
        return
    if file.out == STANDARD_OUTPUT or Path(file.out).suffix.lower() == suffix:
        raise UsageError(f"got moments of {len(groups)} videos; give a folder for a file each, or one --video")
    names = [name + suffix for name in distinct(file_stem(group[0].video.title) for group in groups)]
    texts = [text(group) for group in groups]
    facts = moment_facts([each for group in groups for each in group])
    with target_folder(Path(file.out), {"files": names, **facts, "texts": digest(texts)}, dict) as target:
        for name, content in zip(names, texts, strict=True):
            target.write_bytes(name, content)
        target.finish(*names)


app = typer.Typer(cls=Group, no_args_is_help=True)


@app.callback()
def export() -> None:
    """Write videos of a library, or moments in them, as files for other programs."""


for command in (clips, frames, vtt, srt, edl, otio, csv, jsonl, label_studio, coco, fiftyone, hf):
    app.command()(command)
