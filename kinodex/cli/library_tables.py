"""A library, as tables for people and as JSON; no model is imported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from kinodex.index.conditions import quoted
from kinodex.index.durations import counted
from kinodex.index.errors import NoVectors
from kinodex.index.metadata import plain
from kinodex.index.spaces.model_names import DEFAULT_SPACE
from kinodex.index.terminal_text import visible, visible_lines
from kinodex.index.times import clock
from kinodex.output import console, plain_table, print_json

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.metadata import Facet
    from kinodex.index.rows import FailureRow, LibraryFacts, VideoRow


def show_library(library: Library, limit: int | None, as_json: bool) -> None:
    from kinodex.jobs.towers.carried import tower_states

    videos, failures, facts = library.videos(), library.ingest_log.failures(), library.info()
    others = [f"{space.name} ({space.digest})" for space in library.spaces() if space.digest != facts.space_digest]
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
    if not library.fingerprint.has_vectors:
        out.print(str(NoVectors.of(facts.uri, "a search by picture")), soft_wrap=True, markup=False)
    if (card := facts.space_card) is not None:
        measured = f"first result right in {card.recall_at_1:.2f} of {card.measured_on}"
        better = f"for better results run: kinodex add vectors {quote(facts.uri)} --space {DEFAULT_SPACE}"
        out.print(f"{visible(card.summary)} ({visible(measured)}); {better}", soft_wrap=True, markup=False)
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
    """Return a column with what it holds: "camera (string): front 12, back 3; none in 2"."""
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
