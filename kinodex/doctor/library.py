"""Check of a library for `kinodex doctor`: it opens, and every row is where it should be."""

from __future__ import annotations

from functools import partial

from kinodex.doctor.check_result import CheckResult
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.maintain import health as check_health

of_library = partial(CheckResult, "library", "library")


def check_library(uri: str) -> list[CheckResult]:
    try:
        library = Library.open(uri)
        health = check_health(library)
    except KinodexError as error:
        return [of_library("broken", str(error))]
    frames = sum(row.frames for row in library.videos())
    at_work = f", at work: {', '.join(map(str, health.at_work))}" if health.at_work else ""
    size = f"{uri}: {health.audit.videos:,} videos, {frames:,} frames, {health.data_bytes / 1e9:.2f} GB{at_work}"
    if health.problems:
        more = f" and {len(health.problems) - 1:,} more" if len(health.problems) > 1 else ""
        return [of_library("broken", f"{size}; {health.problems[0]}{more}", f"kinodex maintain {uri}")]
    return [of_library("ok", f"{size}; every row is where it should be")]
