"""Lines of an ingest as its sources are done, once each."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from kinodex.cli.show import MOST_LINES, OutcomeLines, outcome_line
from kinodex.jobs.ingest.commit import IngestReport, Progress, SourceOutcome
from tests.jobs.console.test_ingest_progress import HALF

FILM = SourceOutcome("/a.mp4", "a [b] film", "indexed", "aaaa", 10, 10.0)
BROKEN = SourceOutcome("/b.mp4", "b", "failed", problem="no video", error_class="NotAVideo")
KNOWN = SourceOutcome("/c.mp4", "c", "already there", "aaaa")


def progress(*outcomes: SourceOutcome) -> Progress:
    return replace(HALF, outcomes=outcomes)


def report(*outcomes: SourceOutcome) -> IngestReport:
    return IngestReport("run", datetime(2026, 1, 1, tzinfo=UTC), 1.0, outcomes)


def test_each_line_is_printed_as_it_comes_and_once() -> None:
    out = io.StringIO()
    lines = OutcomeLines(Console(file=out, width=80))
    lines(progress())
    lines(progress(FILM))
    assert out.getvalue().splitlines() == ["indexed        a [b] film: 10 frames of 0:10.0"]
    lines(progress(FILM, KNOWN, BROKEN))
    lines.finish(report(FILM, KNOWN, BROKEN, replace(FILM, title="late")))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["indexed", "failed", "indexed"]


def test_no_more_than_people_read_and_failures_apart_from_videos() -> None:
    out = io.StringIO()
    lines = OutcomeLines(Console(file=out, width=80))
    many = (*[FILM] * (MOST_LINES + 7), BROKEN)
    lines(progress(*many))
    lines.finish(report(*many))
    assert out.getvalue().splitlines()[-2:] == [
        "failed         b: no video",
        "and 7 more; `kinodex info` lists all videos, and what failed",
    ]


def test_what_went_wrong_stands_beside_what_was_indexed() -> None:
    damaged = replace(FILM, decode_errors=2, problem="subtitles: not UTF-8")
    text = outcome_line(damaged)
    assert "10 frames of 0:10.0, 2 damaged packets skipped" in text
    assert "(subtitles: not UTF-8)" in text
