"""Pages of a library, of traces and of runs as one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinodex.output import tell

if TYPE_CHECKING:
    from kinodex.cli.export.options import Order


def write_page(order: Order) -> None:
    from kinodex.web.inputs import classify_inputs
    from kinodex.web.one_file import one_file
    from kinodex.web.viewer_api import ViewerApi

    inputs = classify_inputs([*map(str, order.moments.trace or ()), order.place])
    for uri in inputs.missing:
        tell(f"no library at {uri}, which a run belongs to: its frames are missing")
    page = one_file(ViewerApi(inputs))
    order.write(page.text)
    tell(f"{order.to}: {len(page.text.encode()) / 1e6:.1f} MB, needs no network")
    if page.traces_left_out or page.pictures_left_out:
        tell(f"left out for the file's size: {page.traces_left_out} traces, {page.pictures_left_out} frames")
