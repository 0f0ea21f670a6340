"""Moments and detections as annotations: Label Studio, COCO and FiftyOne."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.output import print_json, say

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order


def write_label_studio(order: Order) -> None:
    from kinodex.jobs.export.label_studio import export_label_studio

    report = export_label_studio(order.library, order.chosen(), order.folder, order.kind.url_prefix, order.kind.boxes)
    text = f"{counted(report.tasks, 'task')}, {counted(report.moments, 'range')}, {report.boxes:,} boxes"
    _show(asdict(report), text, order)


def write_coco(order: Order) -> None:
    from kinodex.jobs.export.coco import export_coco

    label, options = order.moments.label, order.kind
    chosen = replace(order.moments, label="").choose(order.library, order.usual_rows)
    report = export_coco(order.library, chosen, order.folder, label or None, options.min_score, options.screen_text)
    found = f"{report.annotations:,} boxes of text" if options.screen_text else counted(report.annotations, "detection")
    _show(asdict(report), f"{found} in {counted(report.images, 'frame')}, {report.categories} labels", order)


def write_fiftyone(order: Order) -> None:
    from kinodex.jobs.export.fiftyone import export_fiftyone
    from kinodex.jobs.export.video_files import edit_facts_of

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
