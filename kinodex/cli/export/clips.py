"""Moments as video files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.jobs.errors import SOME_FAILED
from kinodex.output import error_console, print_every, print_json, say, tell

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order
    from kinodex.jobs.export.clips import ClipRow
    from kinodex.jobs.export.joined_clips import JoinedClip


def write_clips(order: Order) -> None:
    from kinodex.jobs.export.clips import export_clips
    from kinodex.jobs.export.cutting import CutWay
    from kinodex.jobs.export.joined_clips import export_joined

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
