"""The log of a search: what its frames and lines told, in short lines that stay when the frames leave the memory."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.notes import LogEntry, Note
from kinodex.agent.variants.kino.requests import MOST_FINDINGS, Finding
from kinodex.index.text import beginning

LINE_CHARACTERS = 160
"""Of an entry, which is one line."""


def new_entries(
    findings: Sequence[Finding],
    frames: Sequence[ShownFrame],
    notes: Sequence[Note],
    log: Sequence[LogEntry],
    after: int,
) -> tuple[LogEntry, ...]:
    """Return the entries that findings of a reply add to a log, once `after` frames were seen.

    A finding about no frame and no note that was shown, or that the log has, is left out.
    """
    numbers, noted = citation_numbers(frames, notes)
    shown = {number: (frame.label, frame.video_id, frame.time_s) for number, frame in zip(numbers, frames, strict=True)}
    shown |= {number: (0, note.video_id, note.start_s) for number, note in zip(noted, notes, strict=True)}
    known = {entry.line for entry in log}
    entries = []
    for finding in findings[:MOST_FINDINGS]:
        if (place := shown.get(finding.frame)) is None:
            continue
        seen = beginning(" ".join(finding.seen.split()), LINE_CHARACTERS)
        sides = _letters(finding.supports), _letters(finding.excludes)
        entry = LogEntry(*place, seen, after, *sides)
        if entry.line not in known:
            entries.append(entry)
    return tuple(entries)


def _letters(options: Sequence[str]) -> str:
    return "".join(sorted({option.strip()[:1].upper() for option in options}))
