"""The hits of a search as a table for people and as JSON, and the columns that say on what basis a moment was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.markup import escape

from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.verdicts import Judged, basis_of, claim
from kinodex.output import console, plain_table, print_json

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import Hit


def show_hits(hits: Sequence[Hit], library: LibraryReader, as_json: bool) -> None:
    if as_json:
        uris = {video_id: library.video(video_id).uri for video_id in {hit.video_id for hit in hits}}
        print_json([asdict(hit) | {"start_s": hit.time_s, "uri": uris[hit.video_id]} for hit in hits])
        return
    scores = {name: [getattr(hit, name) for hit in hits] for name in ("reranked", "cosine", "bm25")}
    scores["score"] = [hit.score if hit.found_in == "detections" else None for hit in hits]
    names = [name for name, values in scores.items() if any(value is not None for value in values)]
    by_clock = [f"{hit.recorded_at:%Y-%m-%d %H:%M:%S} UTC" if hit.recorded_at else "" for hit in hits]
    clocks = ["by the clock"] if any(by_clock) else []
    table = plain_table("at", *clocks, *basis_heads(hits), *names, "video", "found in", "text")
    for number, hit in enumerate(hits):
        title = escape(visible(hit.title))
        cells = ["" if (value := scores[name][number]) is None else f"{value:.3f}" for name in names]
        said = f"{hit.speaker}: {hit.text}" if hit.speaker else hit.text or ""
        judged = [by_clock[number]][: len(clocks)] + basis_cells(hit, hits)
        table.add_row(clock(hit.time_s), *judged, *cells, title, hit.found_in, escape(visible_lines(said)))
    console().print(claim(hits), soft_wrap=True, markup=False)
    if hits:
        console().print(table)


def basis_heads(found: Sequence[Judged]) -> list[str]:
    """Return the columns of what is known of each moment: none of an order alone."""
    if any(each.reason for each in found):
        return ["seen", "reason"]
    return ["probability"] if basis_of(found) == "probability" else []


def basis_cells(each: Judged, found: Sequence[Judged]) -> list[str]:
    """Return the cells of a moment in these columns."""
    match basis_heads(found):
        case []:
            return []
        case ["probability"]:
            return ["" if each.probability is None else f"{each.probability:.2f}"]
    return [{True: "yes", False: "no", None: ""}[each.present], escape(visible_lines(each.reason))]
