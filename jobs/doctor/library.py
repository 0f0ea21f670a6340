"""A library's health in a line."""

from __future__ import annotations

from index.errors import KinodexError
from index.library import Library
from jobs.doctor.finding import Finding

SECTION = NAME = "library"


def shelf(uri: str) -> list[Finding]:
    try:
        library = Library.open(uri)
        health = library.health()
    except KinodexError as error:
        return [Finding(SECTION, NAME, "broken", str(error))]
    frames = sum(row.frames for row in library.videos())
    at_work = f", at work: {', '.join(map(str, health.at_work))}" if health.at_work else ""
    said = f"{uri}: {health.audit.videos:,} videos, {frames:,} frames, {health.data_bytes / 1e9:.2f} GB{at_work}"
    if health.problems:
        more = f" and {len(health.problems) - 1:,} more" if len(health.problems) > 1 else ""
        return [Finding(SECTION, NAME, "broken", f"{said}; {health.problems[0]}{more}", f"kinodex maintain {uri}")]
    return [Finding(SECTION, NAME, "ok", f"{said}; every row is where it should be")]
