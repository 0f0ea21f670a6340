"""Frames as a data set of Hugging Face."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.output import error_console, print_every, print_json, say

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order


def write_hf(order: Order) -> None:
    from kinodex.jobs.export.hf_dataset import export_hf
    from kinodex.jobs.export.hf_settings import HfSettings, checked_precision

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
