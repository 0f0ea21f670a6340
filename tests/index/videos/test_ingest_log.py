"""Sources, failures and runs are recorded for the next run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kinodex.index.rows import FailureRow, RunRow, SourceRow
from tests.support.libraries.random_library import WHEN


@pytest.mark.parametrize("noted", [False, True])
def test_failures_count_attempts_and_clear(library, noted):
    if noted:
        library.ingest_log.note_sources()
    failure = FailureRow("/films/it's.mp4", "open", "NotAVideo", "no video in it", 1, WHEN)
    library.ingest_log.add_failures([failure])
    again = replace(failure, message="still none")
    library.ingest_log.add_failures(
        [again, replace(failure, stage="subtitles"), replace(failure, uri="/films/other.mp4")]
    )
    assert [(row.uri, row.stage, row.attempts, row.message) for row in library.ingest_log.failures()] == [
        ("/films/it's.mp4", "open", 2, "still none"),
        ("/films/it's.mp4", "subtitles", 1, "no video in it"),
        ("/films/other.mp4", "open", 1, "no video in it"),
    ]
    library.ingest_log.add_failures([failure, failure])
    assert library.ingest_log.failures()[0].attempts == 4
    library.ingest_log.clear_failures(["/films/it's.mp4", "/films/other.mp4"], ["open", "decode"])
    assert [(row.uri, row.stage) for row in library.ingest_log.failures()] == [("/films/it's.mp4", "subtitles")]
    library.ingest_log.clear_failures(["/films/it's.mp4"])
    library.ingest_log.clear_failures([])
    library.ingest_log.add_failures([])
    assert library.ingest_log.failures() == []


def test_a_run_clears_failures_that_were_there_before_it(library):
    failure = FailureRow("https://me:secret@host/a.mp4", "fetch", "SourceError", "gone", 1, WHEN)
    library.ingest_log.add_failures([failure])
    library.ingest_log.note_sources()
    library.ingest_log.clear_failures(["https://you:other@host/a.mp4", "/films/new.mp4"])
    assert library.ingest_log.failures() == []


def test_sources_are_remembered(library):
    first = SourceRow("/films/it's.mp4", "aaaa", 1234, "2026-01-02 1234", WHEN)
    copy = SourceRow("s3://films/copy.mp4", "aaaa", None, '"etag"', WHEN)
    library.ingest_log.add_sources([first, copy])
    library.ingest_log.add_sources([replace(first, stamp="old"), replace(first, video_id="bbbb")])
    library.ingest_log.add_sources([])
    assert library.ingest_log.sources() == {first.uri: replace(first, video_id="bbbb"), copy.uri: copy}
    library.writer.discard("bbbb")
    assert library.ingest_log.sources() == {copy.uri: copy}


def test_runs_are_kept(library):
    run = RunRow("r1", "ingest", "running", WHEN, None, {})
    library.ingest_log.add_run(run)
    library.ingest_log.add_run(
        replace(run, state="done", ended_at=WHEN, report={"videos": 3, "seconds": {"decode": 0.5}})
    )
    library.ingest_log.add_run(
        RunRow("r2", "add captions", "failed", WHEN + timedelta(hours=1), None, {"stopped": "no model"})
    )
    latest, first = library.ingest_log.runs()
    assert (latest.run_id, first.run_id) == ("r2", "r1")
    assert first == RunRow("r1", "ingest", "done", WHEN, WHEN, {"videos": 3, "seconds": {"decode": 0.5}})
