"""Chunks joined to videos, outcomes written together and counted; what lacks rows is not shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.commit import (
    LONGEST_WAIT_S,
    MOST_AT_ONCE,
    SHORTEST_WAIT_S,
    VIDEOS_AT_ONCE,
    VideoCommitter,
    join_chunks,
)
from kinodex.jobs.ingest.messages import ChunkRead
from kinodex.jobs.ingest.reports import OUTCOMES_KEPT, IngestReport, SourceOutcome, Tally, Totals, summary
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk, ChunkSummary, IngestSettings
from kinodex.pipeline.source import Source
from tests.support.ffmpeg import read_whole, whole
from tests.support.libraries.random_library import made
from tests.support.models.stage_models import tiny_film

FRAMES = 6


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_film(tmp_path_factory.mktemp("film") / "film.mp4", FRAMES, 0)


@pytest.fixture(scope="module")
def read_film(film: Path) -> ChunkSummary:
    return read_whole(film)[0]


def read(chunk: Chunk, summary: ChunkSummary, first: int = 0, until: int = FRAMES) -> ChunkRead:
    """A chunk of which frames `first` to `until` were read, one a second."""
    vectors = made(chunk.video.video_id, FRAMES, 3).vectors[first:until]
    wide = vectors.astype(np.float64)
    distances = 1 - np.sum(wide[1:] * wide[:-1], axis=1)
    digests = {"frames": until - first}
    return ChunkRead(chunk, summary, np.arange(float(first), float(until)), distances, vectors[[0, -1]], digests)


def test_chunks_of_a_video_join_to_the_same_video_and_one_whose_rows_are_missing_is_not_shown(
    library: Library, film: Path, read_film: ChunkSummary
) -> None:
    good, settings = whole(film), IngestSettings(fps=1.0)
    one = join_chunks([read(good, read_film)], settings, library.space_name)
    parts = join_chunks([read(good, read_film, 0, 4), read(good, read_film, 4, FRAMES)], settings, "space")
    assert (parts.row.frames, parts.row.duration_s, parts.row.codec) == (FRAMES, one.row.duration_s, "h264")
    assert parts.segments == one.segments
    assert parts.digests == one.digests == {"frames": FRAMES}

    lost = Chunk(FetchedVideo(Source("/lost.mp4", "lost"), "/lost.mp4", "f" * 32, 10))
    library.writer.add_frames({good.video.video_id: made(good.video.video_id, FRAMES, 3).frame_rows()})
    committer = VideoCommitter(library)
    for video in (one, join_chunks([read(lost, read_film)], settings, library.space_name)):
        committer.add(video)
    complete, rejected = committer.flush()
    assert [each.row.video_id for each in complete] == [good.video.video_id]
    assert [each.row.video_id for each in rejected] == ["f" * 32]
    assert [row.video_id for row in library.videos()] == [good.video.video_id]
    assert [(each.title, each.state) for each in committer.tally.outcomes] == [("film", "indexed")]

    committer = VideoCommitter(library)
    committer.fail(Source("/bad.mp4", "bad"), "open", "NotAVideo", "no container")
    committer.already_there(good.video)
    assert library.ingest_log.failures() == [], "they are written with the next flush"
    assert committer.flush() == ([], [])
    assert [(row.uri, row.error_class) for row in library.ingest_log.failures()] == [("/bad.mp4", "NotAVideo")]
    assert (committer.failed, dict(committer.tally.states)) == (1, {"failed": 1, "already there": 1})


def test_a_commit_is_due_once_many_videos_wait_or_have_waited_for_long(
    library: Library, film: Path, read_film: ChunkSummary
) -> None:
    now_s = 0.0
    committer = VideoCommitter(library, lambda: now_s)
    video = join_chunks([read(whole(film), read_film)], IngestSettings(fps=1.0), library.space_name)
    due = {}
    for count in (0, 1, VIDEOS_AT_ONCE, MOST_AT_ONCE):
        for _ in range(count - len(committer._videos)):
            committer.add(video)
        for now_s in (0.0, SHORTEST_WAIT_S + 0.1, LONGEST_WAIT_S + 0.1):
            due[count, now_s] = committer.is_due
    soon, late = SHORTEST_WAIT_S + 0.1, LONGEST_WAIT_S + 0.1
    assert {each for each, is_due in due.items() if is_due} == {
        (1, late), (VIDEOS_AT_ONCE, soon), (VIDEOS_AT_ONCE, late), *((MOST_AT_ONCE, at) for at in (0.0, soon, late))
    }  # fmt: skip


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
    report = IngestReport("0" * 16, datetime(2026, 1, 2, tzinfo=UTC), 1.0, (GOOD, GOOD, BAD))
    assert (report.count("indexed"), report.count("failed"), report.count("already there")) == (2, 1, 0)
    many = replace(report, totals=Totals({"indexed": 7, "failed": 9}, {"NotAVideo": 9}, 70, 35.0))
    assert (many.count("indexed"), many.frames, many.video_s) == (7, 70, 35.0)
    numbers = summary(many)
    assert numbers["counts"] == {"indexed": 7, "already there": 0, "moved": 0, "failed": 9}
    assert numbers["failures_by_class"] == {"NotAVideo": 9} and not {"outcomes", "totals"} & set(numbers)
