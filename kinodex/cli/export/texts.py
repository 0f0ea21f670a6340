"""Moments as one text: subtitles, edits and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kinodex.jobs.errors import UsageError
from kinodex.output import tell

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order
    from kinodex.index.library import Library
    from kinodex.jobs.export.moments import Moment


def write_vtt(order: Order) -> None:
    from kinodex.jobs.export.subtitles import vtt_text

    _write_by_video(order, vtt_text, ".vtt")


def write_srt(order: Order) -> None:
    from kinodex.jobs.export.subtitles import srt_text

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
    from kinodex.jobs.export.tables import csv_text

    order.write(csv_text(order.chosen()))


def write_jsonl(order: Order) -> None:
    from kinodex.jobs.export.tables import jsonl_text

    order.write(jsonl_text(order.chosen()))


def _timecodes(library: Library, moments: Sequence[Moment]) -> dict[str, str]:
    """Start time codes of the files that have one, by video id."""
    from kinodex.jobs.export.video_files import edit_facts_of

    facts = edit_facts_of(library, (each.video for each in moments))
    return {video_id: each.timecode for video_id, each in facts.items() if each.timecode is not None}


def _write_by_video(order: Order, text: Callable[[Sequence[Moment]], str], suffix: str) -> None:
    """Write the moments of one video to a file, those of several to a file each in a folder that is new or empty."""
    from kinodex.jobs.export.file_names import distinct, file_stem
    from kinodex.jobs.export.moments import by_video, digest, moment_facts
    from kinodex.jobs.export.target_folder import target_folder
    from kinodex.jobs.export.text_files import STANDARD_OUTPUT

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
