"""Output of commands: times, tables and progress lines for people, JSON for programs."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinodex.index.text import redact, redact_values

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.index.rows import FailureRow, Hit, LibraryFacts, StoredFrame, VideoRow

WIDE = 180
LINE_EVERY_S = 30.0
UNITS = (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48), ("days", 86400, float("inf")))


def clock(seconds: float) -> str:
    """A time as people read it: 75.5 -> "1:15.5", 3675 -> "1:01:15.0"."""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest / 10:04.1f}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def duration(seconds: float) -> str:
    """Format a duration for people: "2.5 s", "40 s", "12 min", "3.5 h", "2.1 days"."""
    unit, size = next((unit, size) for unit, size, most in UNITS if seconds < most * size)
    count = seconds / size
    return f"{count:.1f} {unit}" if count < 10 else f"{count:.0f} {unit}"


def counted(number: int, thing: str) -> str:
    """A count with its noun: "1 frame", "2,000 frames"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def console() -> Console:
    """Standard output for people; wide where it is no terminal, so that a pipe gets whole lines."""
    out = Console(highlight=False, emoji=False)  # else a title loses `:b:` to a picture
    return out if out.is_terminal else Console(highlight=False, emoji=False, width=WIDE)


def error_console(quiet: bool = False) -> Console:
    """Standard error for people: progress, which a pipe does not get."""
    return Console(stderr=True, quiet=quiet, emoji=False)


def print_every(console: Console, every_s: float = LINE_EVERY_S) -> Callable[[Callable[[float], str]], None]:
    """Make a function that prints a line if `every_s` went by since the last one, for output that is no terminal.

    It gets a function from the seconds since the beginning to the line, called only when the line is printed.
    """
    began = shown = time.monotonic()

    def offer(line: Callable[[float], str]) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= every_s:
            shown = now
            console.print(line(now - began), soft_wrap=True, markup=False, highlight=False)

    return offer


def print_json(value: Any) -> None:
    """One JSON document on stdout, without secrets; what JSON has no type for (times, paths) as text."""
    print(json.dumps(redact_values(value), default=str, ensure_ascii=not is_utf8(sys.stdout), indent=2))


def plain_table(*columns: str) -> Table:
    """A table without lines; columns of numbers are set to the right."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        right = name in ("frames", "score", "cosine", "bm25", "at", "length", "seconds", "part", "took")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    return table


def show_library(library: Library, limit: int | None, as_json: bool) -> None:
    """Counts and settings of a library, and at most `limit` of its videos and of its failures (None: all)."""
    from kinodex.jobs.towers import tower_states

    videos, failures, facts = library.videos(), library.ingest_log.failures(), library.info()
    others = [f"{space.name} ({space.digest})" for space in library.spaces()[1:]]
    towers = tower_states(library)
    if as_json:
        rows = {
            "videos": [asdict(row) for row in videos[:limit]],
            "failures": [asdict(row) for row in failures[:limit]],
        }
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
    """Print the spaces of a library, and what was added to it."""
    out.print(f"space {escape(facts.space)} ({facts.space_digest}), settings {json.dumps(dict(facts.settings))}")
    if others:
        out.print(f"also in {escape(', '.join(others))}")
    for each in towers:
        of_space = f" of {each['space']}" if others else ""
        out.print(f"{each['tower']} tower{of_space}: {each['state']}", soft_wrap=True, markup=False)
    for added in facts.added:
        out.print(f"{added.stage} by {escape(added.model)}: {added.rows:,} in {added.videos:,} videos", soft_wrap=True)
    if languages := library.speakers.languages():
        shown = ", ".join(f"{escape(visible(code))} ({count:,} lines)" for code, count in languages.items())
        out.print(f"said and subtitled in {shown}", soft_wrap=True)
    if speakers := library.speakers.rows():
        named = sum(row.name is not None for row in speakers)
        out.print(f"{len(speakers):,} voices, {named:,} of them named (`kinodex name`)")


def _show_videos(library: Library, videos: Sequence[VideoRow], limit: int | None, out: Console) -> None:
    """Print a table of videos, and those whose source holds another video by now."""
    table = plain_table("video", "title", "length", "frames", "segments", "lines", "picture")
    for row in videos[:limit]:
        picture = f"{row.width_px}x{row.height_px} {row.codec}" if row.frames else "none, only text"
        length = clock(row.duration_s)
        counts = (str(row.frames), str(row.segments), str(row.transcript_lines))
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


def show_hits(hits: Sequence[Hit], library: Library, as_json: bool) -> None:
    """The hits of a search, best first, with what each search gave them: fused ranks say nothing to a reader."""
    videos = {video_id: library.video(video_id) for video_id in {hit.video_id for hit in hits}}
    if as_json:
        rows = ((hit, videos[hit.video_id]) for hit in hits)
        print_json([asdict(hit) | {"title": row.title, "uri": row.uri} for hit, row in rows])
        return
    scores = {"cosine": [hit.cosine for hit in hits], "bm25": [hit.bm25 for hit in hits]}
    scores["score"] = [hit.score if hit.source == "detection" else None for hit in hits]
    names = [name for name, values in scores.items() if any(value is not None for value in values)]
    table = plain_table("at", *names, "video", "found in", "text")
    for number, hit in enumerate(hits):
        found = {"frame": "picture", "both": "several"}.get(hit.source, hit.source)
        title = escape(visible(videos[hit.video_id].title))
        cells = ["" if (value := scores[name][number]) is None else f"{value:.3f}" for name in names]
        said = f"{hit.speaker}: {hit.text}" if hit.speaker else hit.text or ""
        table.add_row(clock(hit.time_s), *cells, title, found, escape(visible_lines(said)))
    console().print(table if hits else "no hit")


def show_frames(row: VideoRow, frames: Iterable[StoredFrame], out: Path, as_json: bool) -> None:
    """Write frames as JPEGs named by video and time, and say where."""
    from kinodex.jobs.errors import UsageError

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
        print(f"{each['path']}  {each['time_s']:.3f} s")


# Text of files and servers on a terminal: it cannot break a line or steer the terminal, and shows no secret.

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs, changes of writing direction, halves of characters."""


def visible(text: str) -> str:
    """A text in one line without secrets, each invisible character as its escape: a line break as `\\n`."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), redact(text))


def visible_lines(text: str) -> str:
    """Escape all but the line breaks of a text."""
    return "\n".join(map(visible, text.split("\n")))


def is_utf8(stream: TextIO) -> bool:
    """True for a stream that can write any text."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") in ("utf8", "utf8sig")


def write_any_text(*streams: TextIO) -> None:
    """Have streams write what their encoding lacks as escapes: a locale without UTF-8 is no reason to fail."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not is_utf8(stream)):
            stream.reconfigure(errors="backslashreplace")
