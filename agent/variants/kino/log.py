"""The log of a search: what its frames and lines told, in short lines that stay when the frames leave the memory."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import LogEntry
from kinodex.agent.variants.kino.requests import MOST_FINDINGS, Finding
from kinodex.index.text import beginning

LINE_CHARACTERS = 160
"""Of an entry, which is one line."""


def new_entries(
    findings: Sequence[Finding], frames: Sequence[ShownFrame], log: Sequence[LogEntry]
) -> tuple[LogEntry, ...]:
    """Return the entries that findings of a reply add to a log.

    A finding about a frame that is not shown, or that the log has, is left out.
    """
    shown, known = {frame.label: frame for frame in frames}, {entry.line for entry in log}
    entries = []
    for finding in findings[:MOST_FINDINGS]:
        if (frame := shown.get(finding.frame)) is None:
            continue
        seen = beginning(" ".join(finding.seen.split()), LINE_CHARACTERS)
        sides = _letters(finding.supports), _letters(finding.excludes)
        entry = LogEntry(frame.label, frame.video_id, frame.time_s, seen, max(shown), *sides)
        if entry.line not in known:
            entries.append(entry)
    return tuple(entries)


def _letters(options: Sequence[str]) -> str:
    return "".join(sorted({option.strip()[:1].upper() for option in options}))
