"""Functions that write each kind of `kinodex export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import typer

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.jobs.errors import SOME_FAILED, UsageError
from kinodex.output import error_console, print_every, print_json, say, tell

if TYPE_CHECKING:
    from kinodex.cli.export_options import Order
    from kinodex.index.library import Library
    from kinodex.index.rows import StoredFrame, VideoRow
    from kinodex.jobs.export.media import ClipRow, JoinedClip
    from kinodex.jobs.export.moments import Moment

FRAMES_AT_ONCE = 200
"""Frames in memory at a time."""

# Moments and detections as annotations.


def write_label_studio(order: Order) -> None:
    from kinodex.jobs.export.annotations import export_label_studio

    report = export_label_studio(order.library, order.chosen(), order.folder, order.kind.url_prefix, order.kind.boxes)
    text = f"{counted(report.tasks, 'task')}, {counted(report.moments, 'range')}, {report.boxes:,} boxes"
    _show(asdict(report), text, order)


def write_coco(order: Order) -> None:
    from kinodex.jobs.export.annotations import export_coco

    label, options = order.moments.label, order.kind
    chosen = replace(order.moments, label="").choose(order.library, order.usual_rows)
    report = export_coco(order.library, chosen, order.folder, label or None, options.min_score, options.screen_text)
    found = f"{report.annotations:,} boxes of text" if options.screen_text else counted(report.annotations, "detection")
    _show(asdict(report), f"{found} in {counted(report.images, 'frame')}, {report.categories} labels", order)


def write_fiftyone(order: Order) -> None:
    from kinodex.jobs.export.annotations import export_fiftyone
    from kinodex.jobs.export.media import edit_facts_of

    chosen = order.chosen()
    facts = edit_facts_of(order.library, (each.video for each in chosen))
    videos = export_fiftyone(chosen, order.folder, {video_id: each.times_s for video_id, each in facts.items()})
    text = f"{counted(len(chosen), 'range')} of {counted(videos, 'video')}"
    _show({"videos": videos, "moments": len(chosen)}, text, order)


def _show(report: dict[str, int], text: str, order: Order) -> None:
    if order.kind.json:
        print_json({"folder": order.to, **report})
    else:
        say(f"{text} in {visible(order.to)}")


# Frames as a data set.


def write_hf(order: Order) -> None:
    from kinodex.jobs.export.datasets import HfSettings, checked_precision, export_hf

    options, folder = order.kind, order.folder
    settings = HfSettings(checked_precision(options.vectors), options.shard_frames, options.split)
    line = print_every(error_console())

    def on_file(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} files after {seconds:.0f} s")

    library = order.library.where(order.moments.where)
    report = export_hf(library, folder, settings, order.moments.video or (), options.space, on_file)
    if options.json:
        print_json({"folder": str(folder.absolute()), **report._asdict()})
        return
    before = f", {counted(report.files_before, 'file')} of an earlier run kept" if report.files_before else ""
    say(
        f"{counted(report.frames, 'frame')} of {counted(report.videos, 'video')} in {counted(report.files, 'file')}, "
        f"{report.stored_bytes / 1e6:,.1f} MB{before}: load_dataset({visible(str(folder))!r})"
    )


# Moments as video files and as pictures.


def write_clips(order: Order) -> None:
    from kinodex.jobs.export.media import CutWay, export_clips, export_joined

    chosen = order.chosen()
    if order.kind.reel:
        _show_clips(export_joined(order.library, chosen, order.folder), order)
        return
    line = print_every(error_console())

    def on_clip(done: int, total: int) -> None:
        line(lambda seconds: f"{done:,} of {total:,} clips after {seconds:.0f} s")

    way = CutWay(order.kind.exact, order.kind.subtitles)
    _show_clips(export_clips(order.library, chosen, order.folder, way, on_clip), order)


def _show_clips(clips: Sequence[ClipRow | JoinedClip], order: Order) -> None:
    failed = [each.error for each in clips if each.error]
    if order.kind.json:
        print_json([asdict(each) for each in clips])
    else:
        say(f"{counted(len(clips) - len(failed), 'clip')} in {visible(order.to)}")
    for error, count in Counter(failed).items():
        tell(f"{counted(count, 'clip')} not cut: {error}")
    if failed:
        raise typer.Exit(SOME_FAILED)


def write_frames(order: Order) -> None:
    from kinodex.jobs.export.media import export_frames

    if order.kind.at or order.kind.every is not None:
        _write_stills(order)
        return
    rows = export_frames(order.library, order.chosen(), order.folder, order.kind.most)
    if order.kind.json:
        print_json(rows)
    else:
        say(f"{counted(len({row['file'] for row in rows}), 'frame')} in {visible(order.to)}")


def _write_stills(order: Order) -> None:
    """Write the frames of one video at given times."""
    from kinodex.cli.frame_files import show_frames

    options, named, from_s, to_s = order.kind, order.moments.video or [], order.moments.from_s, order.moments.to_s
    at, every_s, mode = options.at or [], options.every, options.mode
    if len(named) != 1:
        raise UsageError("got --at or --every without one video; name it with --video")
    if mode not in ("nearest", "exact", "shown"):
        raise UsageError(f"got --mode {mode}; it is nearest, exact or shown")
    if at and not from_s is to_s is every_s is None:
        raise UsageError("got both --at and --from, --to or --every; give one of them")
    library = order.library.where(order.moments.where)
    row = library.video(named[0])
    if every_s is not None:
        at, mode = _times(library, row, from_s, to_s, every_s), "shown"
    show_frames(row, _stored(library, row, at, mode), order.folder, as_json=options.json)


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


# Moments as one text.


def write_vtt(order: Order) -> None:
    from kinodex.jobs.export.texts import vtt_text

    _write_by_video(order, vtt_text, ".vtt")


def write_srt(order: Order) -> None:
    from kinodex.jobs.export.texts import srt_text

    _write_by_video(order, srt_text, ".srt")


def write_edl(order: Order) -> None:
    from kinodex.jobs.export.edits import edl_text
    from kinodex.jobs.export.frame_rate import frame_rate

    chosen = order.chosen()
    rate = frame_rate((each.video for each in chosen), order.kind.fps, order.kind.drop_frame, standard=True)
    if rate.in_place_of is not None:
        tell(f"counted at {rate.fps:.6g} frames a second: no timecode has {rate.in_place_of:.6g}")
    order.write(edl_text(chosen, rate, order.kind.title, _timecodes(order.library, chosen)))


def write_otio(order: Order) -> None:
    from kinodex.jobs.export.edits import otio_text
    from kinodex.jobs.export.frame_rate import frame_rate

    chosen = order.chosen()
    rate = frame_rate((each.video for each in chosen), order.kind.fps, drop_frame=None)
    order.write(otio_text(chosen, rate, order.kind.title, _timecodes(order.library, chosen)))


def write_csv(order: Order) -> None:
    from kinodex.jobs.export.texts import csv_text

    order.write(csv_text(order.chosen()))


def write_jsonl(order: Order) -> None:
    from kinodex.jobs.export.texts import jsonl_text

    order.write(jsonl_text(order.chosen()))


def _timecodes(library: Library, moments: Sequence[Moment]) -> dict[str, str]:
    """Start time codes of the files that have one, by video id."""
    from kinodex.jobs.export.media import edit_facts_of

    facts = edit_facts_of(library, (each.video for each in moments))
    return {video_id: each.timecode for video_id, each in facts.items() if each.timecode is not None}


def _write_by_video(order: Order, text: Callable[[Sequence[Moment]], str], suffix: str) -> None:
    """Write the moments of one video to a file, those of several to a file each in a folder that is new or empty."""
    from kinodex.jobs.export.moments import by_video, digest, moment_facts, target_folder
    from kinodex.jobs.export.texts import STANDARD_OUTPUT, distinct, file_stem

    groups = list(by_video(order.chosen()).values())
    if len(groups) == 1:
        order.write(text(groups[0]))
        return
    if order.to == STANDARD_OUTPUT or order.folder.suffix.lower() == suffix:
        raise UsageError(f"got moments of {len(groups)} videos; give a folder for a file each, or one --video")
    names = [name + suffix for name in distinct(file_stem(group[0].video.title) for group in groups)]
    texts = [text(group) for group in groups]
    facts = moment_facts([each for group in groups for each in group])
    with target_folder(order.folder, {"files": names, **facts, "texts": digest(texts)}, dict) as target:
        for name, content in zip(names, texts, strict=True):
            target.write_bytes(name, content)
        target.finish(*names)


# Pages of a library, of traces and of runs as one file.


def write_page(order: Order) -> None:
    from kinodex.web.inputs import ViewerApi, classify_inputs
    from kinodex.web.one_file import one_file

    inputs = classify_inputs([*map(str, order.moments.trace or ()), order.place])
    for uri in inputs.missing:
        tell(f"no library at {uri}, which a run belongs to: its frames are missing")
    page = one_file(ViewerApi(inputs))
    order.write(page.text)
    tell(f"{order.to}: {len(page.text.encode()) / 1e6:.1f} MB, needs no network")
    if page.traces_left_out or page.pictures_left_out:
        tell(f"left out for the file's size: {page.traces_left_out} traces, {page.pictures_left_out} frames")
