"""Outcomes of a run: the first of each state in full and all of them in numbers; progress a few times a second."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from kinodex.jobs.ingest.commit import OUTCOMES_KEPT, IngestReport, SourceOutcome, Tally, Totals, summary

GOOD = SourceOutcome("/a.mp4", "a", "indexed", "0" * 32, 10, 5.0)
BAD = SourceOutcome("/b.mp4", "b", "failed", problem="no video", error_class="NotAVideo")


def test_outcomes_beyond_the_first_of_each_state_are_only_counted() -> None:
    tally = Tally()
    for _ in range(OUTCOMES_KEPT + 5):
        tally.add(GOOD, 3)
    tally.add(BAD, 4)
    assert len(tally.outcomes) == OUTCOMES_KEPT + 1 and tally.outcomes[-1] is BAD
    assert tally.done == OUTCOMES_KEPT + 6 and tally.bytes_done == 3 * (OUTCOMES_KEPT + 5) + 4
    totals = tally.totals()
    assert totals.states == {"indexed": OUTCOMES_KEPT + 5, "failed": 1} and totals.failures == {"NotAVideo": 1}
    assert (totals.frames, totals.video_s) == (10 * (OUTCOMES_KEPT + 5), 5.0 * (OUTCOMES_KEPT + 5))


def test_a_report_counts_all_outcomes_also_those_that_it_does_not_hold() -> None:
    report = IngestReport("0" * 16, datetime(2026, 1, 2, tzinfo=UTC), 1.0, (GOOD, GOOD, BAD))
    assert (report.count("indexed"), report.count("failed"), report.count("already there")) == (2, 1, 0)
    many = replace(report, totals=Totals({"indexed": 7, "failed": 9}, {"NotAVideo": 9}, 70, 35.0))
    assert (many.count("indexed"), many.frames, many.video_s) == (7, 70, 35.0)
    numbers = summary(many)
    assert numbers["counts"] == {"indexed": 7, "already there": 0, "failed": 9}
    assert numbers["failures_by_class"] == {"NotAVideo": 9} and not {"outcomes", "totals"} & set(numbers)
