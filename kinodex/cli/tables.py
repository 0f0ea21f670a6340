"""A library, the hits of a search and stored frames, as tables for people and as JSON; no model is imported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from kinodex.index.conditions import quoted
from kinodex.index.durations import counted
from kinodex.index.metadata import plain
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.jobs.errors import UsageError
from kinodex.jobs.verdicts import Judged, basis_of, claim
from kinodex.output import console, plain_table, print_json, say

if TYPE_CHECKING:
    from rich.table import Table as Drawn

    from kinodex.index.library import Library, LibraryReader
    from kinodex.index.metadata import Facet
    from kinodex.index.rows import FailureRow, Hit, LibraryFacts, StoredFrame, VideoRow
    from kinodex.jobs.eval.tables import Table


def show_library(library: Library, limit: int | None, as_json: bool) -> None:
    from kinodex.jobs.towers import tower_states

    videos, failures, facts = library.videos(), library.ingest_log.failures(), library.info()
    others = [f"{space.name} ({space.digest})" for space in library.spaces()[1:]]
    towers = tower_states(library)
    if as_json:
        rows = {
            "videos": [asdict(row) for row in videos[:limit]],
            "failures": [asdict(row) for row in failures[:limit]],
        }
        rows["facets"] = [asdict(facet) for facet in library.metadata.facets(library.video_ids())]
        voices = {"languages": library.speakers.languages(), "speakers": list(map(asdict, library.speakers.rows()))}
        print_json(asdict(facts) | {"other_spaces": others, "towers": towers} | voices | rows)
        return
    out = console()
    out.print(f"{escape(library.uri)}: {len(videos):,} videos, {facts.frames:,} frames, {facts.hours:.2f} hours")
    _show_facts(library, facts, others, towers, out)
    _show_videos(library, videos, limit, out)
    _show_failures(failures, limit, out)


def _show_facts(
    library: Library, facts: LibraryFacts, others: Sequence[str], towers: Sequence[Mapping[str, Any]], out: Console
) -> None:
    out.print(f"space {escape(facts.space)} ({facts.space_digest}), settings {json.dumps(dict(facts.settings))}")
    if facts.noise:
        out.print(facts.noise, soft_wrap=True, markup=False)
    if others:
        out.print(f"also in {escape(', '.join(others))}")
    for each in towers:
        if each["tower"] == "text" and not each["state"].startswith("carried"):
            of_space = f" of {each['space']}" if others else ""
            out.print(f"text tower{of_space}: {each['state']}", soft_wrap=True, markup=False)
    for added in facts.added:
        out.print(f"{added.stage} by {escape(added.model)}: {added.rows:,} in {added.videos:,} videos", soft_wrap=True)
    for facet in library.metadata.facets(library.video_ids()) if facts.columns else ():
        out.print(visible(facet_line(facet)), soft_wrap=True, markup=False)
    if languages := library.speakers.languages():
        shown = ", ".join(f"{escape(visible(code))} ({count:,} lines)" for code, count in languages.items())
        out.print(f"said and subtitled in {shown}", soft_wrap=True)
    if speakers := library.speakers.rows():
        named = sum(row.name is not None for row in speakers)
        out.print(f"{len(speakers):,} voices, {named:,} of them named (`kinodex speakers`)")


def facet_line(facet: Facet) -> str:
    """A column with what it holds: "camera (string): front 12, back 3; none in 2"."""
    values = ", ".join(f"{plain(value)} {count:,}" for value, count in facet.values)
    if facet.least is not None:
        values = f"{plain(facet.least)} to {plain(facet.most)}"
    missing = f"; none in {counted(facet.missing, 'video')}" if facet.missing else ""
    return f"{quoted(facet.name)} ({facet.type}): {values or 'many values'}{missing}"


def _show_videos(library: Library, videos: Sequence[VideoRow], limit: int | None, out: Console) -> None:
    table = plain_table("video", "title", "length", "frames", "segments", "lines", "picture")
    spoken = library.additions.counts("speech")
    for row in videos[:limit]:
        picture = f"{row.width_px}x{row.height_px} {row.codec}" if row.frames else "none, only text"
        length = clock(row.duration_s)
        lines = row.speech_lines + spoken.get(row.video_id, 0)
        counts = (str(row.frames), str(row.segments), str(lines))
        table.add_row(row.video_id[:12], escape(visible(row.title)), length, *counts, picture)
    out.print(table)
    _show_more(len(videos), limit, out)
    current = {uri: source.video_id for uri, source in library.ingest_log.sources().items()}
    for row in videos:
        if current.get(row.uri, row.video_id) != row.video_id:
            out.print(
                f"[yellow]{row.video_id[:12]}[/]: {escape(visible(row.uri))} holds another video by now; "
                "`kinodex remove videos` takes the old one out",
                soft_wrap=True,
            )


def _show_failures(failures: Sequence[FailureRow], limit: int | None, out: Console) -> None:
    if failures:
        out.print(f"\n{len(failures):,} failed:")
    for failure in failures[:limit]:
        times = f" ({failure.attempts} attempts)" if failure.attempts > 1 else ""
        out.print(f"[red]{failure.error_class}[/]{times}: {escape(visible_lines(failure.message))}", soft_wrap=True)
    _show_more(len(failures), limit, out)


def _show_more(count: int, limit: int | None, out: Console) -> None:
    if limit is not None and count > limit:
        out.print(f"and {count - limit:,} more; --limit 0 shows all")


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
    if hits and hits[0].noise:
        say(hits[0].noise)
    console().print(claim(hits), soft_wrap=True, markup=False)
    if hits:
        console().print(table)


def basis_heads(found: Sequence[Judged]) -> list[str]:
    """The columns of what is known of each moment: none of an order alone."""
    if any(each.reason for each in found):
        return ["seen", "reason"]
    return ["probability"] if basis_of(found) == "probability" else []


def basis_cells(each: Judged, found: Sequence[Judged]) -> list[str]:
    """The cells of a moment in these columns."""
    match basis_heads(found):
        case []:
            return []
        case ["probability"]:
            return ["" if each.probability is None else f"{each.probability:.2f}"]
    return [{True: "yes", False: "no", None: ""}[each.present], escape(visible_lines(each.reason))]


def show_frames(row: VideoRow, frames: Iterable[StoredFrame], out: Path, as_json: bool) -> None:
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for frame in frames:
            path = out / f"{row.video_id[:12]}_{frame.time_s:010.3f}.jpg"
            path.write_bytes(frame.jpeg)
            written.append({"path": str(path), "video_id": row.video_id, "time_s": frame.time_s})
    except OSError as error:
        raise UsageError(
            f"cannot write frames to {out}: {error.strerror}; give --out a folder you may write"
        ) from error
    if as_json:
        print_json(written)
        return
    for each in written:
        say(f"{each['path']}  {each['time_s']:.3f} s")


# Tables of figures, such as those of an evaluation: drawn for people, or as Markdown for papers.

GAP = 2
"""Characters between two columns."""


def print_all(lines: Sequence[str], tables: Sequence[Table], as_markdown: bool) -> None:
    if as_markdown:
        from kinodex.jobs.eval.tables import markdown

        say("\n\n".join(["  \n".join(lines), *map(markdown, tables)]))
        return
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    for table in tables:
        for part in fitting(table, out.width):
            out.print(_drawn(part))


def fitting(table: Table, width: int) -> list[Table]:
    """Cut a table into parts of at most so many characters a line, if the columns allow; each begins with the names.

    Names may take half of the line; longer ones are folded.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) + GAP for column in zip(table.heads, *table.rows, strict=True)]
    names = tuple(range(table.names))
    room = width - sum(min(widths[each], width // 2 // table.names) for each in names) - GAP
    parts: list[tuple[int, ...]] = [()]
    for number in range(table.names, len(widths)):
        if parts[-1] and sum(widths[each] for each in (*parts[-1], number)) > room:
            parts.append(())
        parts[-1] += (number,)
    titles = (table.title, *(f"{table.title}, continued" for _ in parts[1:]))
    return [_columns(table, title, (*names, *part)) for title, part in zip(titles, parts, strict=True)]


def _columns(table: Table, title: str, columns: Sequence[int]) -> Table:
    heads, *rows = (tuple(row[each] for each in columns) for row in (table.heads, *table.rows))
    return replace(table, title=title, heads=heads, rows=tuple(rows))


def _drawn(table: Table) -> Drawn:
    from rich import box
    from rich.markup import escape
    from rich.table import Table as Drawn

    drawn = Drawn(box=box.SIMPLE_HEAD, title=escape(table.title), title_justify="left", pad_edge=False)
    drawn.collapse_padding = True
    for number, head in enumerate(table.heads):
        is_name = number < table.names
        drawn.add_column(escape(head), justify="left" if is_name else "right", overflow="fold", no_wrap=not is_name)
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn
