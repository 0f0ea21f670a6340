"""A library on disk: what is written comes back, and half of a video never does."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from multiprocessing import get_context

import numpy as np
import pytest

from index.errors import (
    LibraryError,
    QueryError,
    TimeOutside,
    UnknownVideo,
)
from index.library import Library
from index.maintenance.refresh import refresh
from index.maintenance.sweep import audit
from index.rows import FailureRow, RunRow, SegmentRow, SourceRow
from index.store.indexes import Thresholds
from index.store.schema import frame_key
from pipeline.sampling.types import FrameRow
from tests.support.random_library import DIM, SETTINGS, WHEN, fingerprint, made, run_together, unit_vectors, write


@pytest.fixture
def library(tmp_path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())


def test_what_is_written_comes_back(library):
    video = made("a1b2c3d4", 30, seed=1, start_s=2.5, lines=((3.0, 4.0, "a dog barks"), (9.0, 11.0, "it stops")))
    library.writer.add_frames({video.video_id: video.frame_rows()[:20]})
    library.writer.add_frames({video.video_id: video.frame_rows()[20:]})
    segments = [SegmentRow("", 0, 2.5, 12.0, "shot"), SegmentRow("", 0, 12.0, 32.5, "window")]
    library.writer.add_segments({video.video_id: segments})
    library.writer.add_transcript({video.video_id: video.transcript()})
    assert library.writer.complete([replace(video.video_row(), segments=2)]) == ()

    again = Library.open(library.uri)
    assert again.videos() == [replace(video.video_row(), segments=2)]
    stored = again.vectors(video.video_id)
    np.testing.assert_array_equal(stored.vectors, video.vectors)
    assert stored.vectors.dtype == np.float16
    np.testing.assert_array_equal(stored.time_s, video.times_s)
    np.testing.assert_array_equal(stored.frame_no, np.arange(30))
    frames = again.frames(video.video_id, [7, 3, 29])
    assert [(f.frame_no, f.time_s, f.jpeg) for f in frames] == [
        (7, 9.5, b"jpeg a1b2c3d4 7"),
        (3, 5.5, b"jpeg a1b2c3d4 3"),
        (29, 31.5, b"jpeg a1b2c3d4 29"),
    ]
    assert [(s.segment_no, s.start_s, s.end_s, s.kind) for s in again.segments(video.video_id)] == [
        (0, 2.5, 12.0, "shot"),
        (1, 12.0, 32.5, "window"),
    ]
    assert again.transcript(video.video_id) == video.transcript()
    assert [line.text for line in again.transcript(video.video_id, 4.0, 9.0)] == []
    assert [line.text for line in again.transcript(video.video_id, 3.9, 9.1)] == ["a dog barks", "it stops"]
    assert [line.text for line in again.transcript(video.video_id, start_s=5.0)] == ["it stops"]


def test_info_counts_complete_videos(library):
    write(library, made("aaaa", 18, seed=1))
    write(library, made("bbbb", 18, seed=2, lines=((0.0, 1.0, "hello"),)))
    write(library, made("cccc", 18, seed=3), complete=False)
    facts = library.info()
    assert (facts.videos, facts.frames, facts.transcript_lines, facts.failures) == (2, 36, 1, 0)
    assert facts.hours == pytest.approx(36 / 3600)
    assert facts.stored_bytes > 3 * 18 * DIM * 2
    assert (facts.space, facts.space_digest) == ("local-dir:/models/tiny", fingerprint().digest)
    assert facts.settings == SETTINGS


def test_a_reader_sees_what_another_handle_completes(library):
    reader = Library.open(library.uri)
    assert reader.videos() == []
    write(library, made("aaaa", 4, seed=1))
    assert reader.has_video("aaaa")
    library.writer.discard("aaaa")
    assert not reader.has_video("aaaa")


def test_leftovers_are_invisible_and_discarded(library):
    kept, broken = (
        made("aaaa", 10, seed=1, lines=((0.0, 2.0, "kite"),)),
        made("bbbb", 50, 2, lines=((0.0, 2.0, "kite"),)),
    )
    write(library, kept)
    write(library, broken, complete=False)
    assert not library.has_video("bbbb")
    assert [row.video_id for row in library.videos()] == ["aaaa"]
    query = broken.vectors[0].astype(np.float32)
    assert {hit.video_id for hit in library.search.frames(query, k=5)} == {"aaaa"}
    assert len(library.search.frames(query, k=10)) == 10
    assert {hit.video_id for hit in library.search.transcript("kite")} == {"aaaa"}
    for read in (library.vectors, library.segments, library.transcript):
        with pytest.raises(UnknownVideo):
            read("bbbb")
    library.writer.discard("bbbb")
    write(library, broken)
    assert len(library.vectors("bbbb").frame_no) == 50
    assert library.search.frames(query, k=1)[0].video_id == "bbbb"


def _write_without_end(uri: str) -> None:
    library = Library.open(uri)
    for number in range(1000):
        write(library, made(f"video{number:04d}", 40, seed=number))


def test_a_killed_writer_leaves_only_whole_videos(library):
    writer = get_context("spawn").Process(target=_write_without_end, args=(library.uri,))
    writer.start()
    while len(library.videos()) < 3:
        assert writer.is_alive()
    writer.kill()
    writer.join()
    rows = library.videos()
    assert len(rows) >= 3
    for row in rows:
        assert len(library.vectors(row.video_id).frame_no) == row.frames == 40
        assert library.frames(row.video_id, [39])[0].jpeg == f"jpeg {row.video_id} 39".encode()


def test_two_runs_on_one_video_are_noticed(library):
    video, other = made("aaaa", 5, seed=1), made("bbbb", 5, seed=2)
    write(library, video, complete=False)
    write(library, video, complete=False)
    write(library, other, complete=False)
    assert library.writer.complete([video.video_row(), other.video_row()]) == ("aaaa",)
    assert library.video_ids() == {"bbbb"}
    assert [row.video_id for row in library.videos()] == ["bbbb"]
    assert audit(library).problems == ()
    write(library, video)
    assert len(library.vectors("aaaa").frame_no) == 5


def test_a_video_is_complete_with_exactly_its_rows(library):
    video = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    segments = [SegmentRow("", 0, 0.0, 5.0, "shot")]
    row = replace(video.video_row(), segments=1)
    for wrong in (
        replace(row, frames=6),
        replace(row, segments=0),
        replace(row, segments=2),
        replace(row, transcript_lines=0),
    ):
        write(library, video, complete=False)
        library.writer.add_segments({"aaaa": segments})
        assert library.writer.complete([wrong]) == ("aaaa",)
    rows = video.frame_rows()
    library.writer.add_frames({"aaaa": [*rows[:4], rows[0]]})  # five rows, though not those five
    assert library.writer.complete([replace(video.video_row(), transcript_lines=0)]) == ("aaaa",)
    assert library.writer.complete([]) == ()
    assert library.videos() == []
    assert audit(library).problems == ()


def test_many_videos_in_one_commit(library):
    videos = [made(f"{n:04d}", n + 1, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(9)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.add_transcript({video.video_id: video.transcript() for video in videos})
    library.writer.add_segments({video.video_id: [SegmentRow("", 0, 0.0, 1.0, "shot")] * 2 for video in videos})
    assert library.writer.complete([replace(video.video_row(), segments=2) for video in videos]) == ()
    for video in videos:
        np.testing.assert_array_equal(library.vectors(video.video_id).vectors, video.vectors)
        assert [row.segment_no for row in library.segments(video.video_id)] == [0, 1]
    library.writer.discard(*(video.video_id for video in videos[:5]))
    assert [row.video_id for row in library.videos()] == ["0005", "0006", "0007", "0008"]
    assert [hit.video_id for hit in library.search.transcript("line", k=20)] == ["0005", "0006", "0007", "0008"]


def test_a_range_of_frames_is_taken_out(library):
    video = made("aaaa", 10, seed=1)
    library.writer.add_frames({"aaaa": video.frame_rows(), "bbbb": video.frame_rows()})
    library.writer.discard_frames("aaaa", 3, 5)
    library.writer.discard_frames("aaaa", 8, None)
    assert (
        library.writer.complete([replace(video.video_row(), frames=6), replace(video.video_row(), video_id="bbbb")])
        == ()
    )
    assert library.vectors("aaaa").frame_no.tolist() == [0, 1, 2, 5, 6, 7]
    assert [frame.frame_no for frame in library.frames_at("aaaa", [4.4, 9.0])] == [5, 7]


def test_no_reader_sees_a_frame_twice(library):
    """A run that began before another completed the video appends the same frames again, until it is noticed."""
    video = made("aaaa", 8, seed=1)
    write(library, video)
    write(library, video, complete=False)
    np.testing.assert_array_equal(library.vectors("aaaa").vectors, video.vectors)
    assert len(library.search.frames(video.vectors[2], k=8)) == len(library.frames("aaaa", range(8))) == 8
    assert [frame.frame_no for frame in library.frames_at("aaaa", [0.0, 7.9])] == [0, 7]


def test_completing_again_replaces_the_row(library):
    video = made("aaaa", 5, seed=1)
    write(library, video)
    library.writer.complete([video.video_row(title="renamed")])
    assert [row.title for row in library.videos()] == ["renamed"]


def test_a_video_by_any_of_its_names(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)
    assert library.video("abcd1111").title == "cake"
    assert library.video("ef00").video_id == "ef001111"
    assert library.video("cake.mp4").video_id == library.video("/films/cake.mp4").video_id == "abcd1111"
    with pytest.raises(UnknownVideo, match=r"'abcd', which 2 videos go by: .*abcd1111.*abcd2222"):
        library.video("abcd")
    with pytest.raises(UnknownVideo, match=r"boat.*abcd2222.*ef001111"):
        library.video("boat")
    with pytest.raises(UnknownVideo, match="none of the 3 here, such as cake"):
        library.video("cakes")
    with pytest.raises(UnknownVideo, match="'ef0'"):
        library.video("ef0")
    with pytest.raises(UnknownVideo, match="' OR '1'='1"):
        library.vectors("' OR '1'='1")
    with pytest.raises(QueryError, match="udcff', which is no UTF-8"):
        Library.open(library.uri).video("\udcff")


def test_videos_by_globs(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)

    def ids(*names):
        return [row.video_id for row in library.videos_named(names)]

    assert ids("b*") == ["abcd2222", "ef001111"]
    assert ids("films/*.mp4") == ids("/films/*") == ["abcd2222", "ef001111", "abcd1111"]
    assert ids("ef001111", "b?at", "cake") == ["ef001111", "abcd2222", "abcd1111"]
    with pytest.raises(UnknownVideo, match=r"'x\*', which is none of the 3 here"):
        ids("cake", "x*")
    write(library, made("ef002222", 2, seed=1), "c[abc]ke")
    assert ids("c[abc]ke") == ["ef002222"], "not the one that it would match as a glob"


def test_frames_by_time(library):
    video = made("aaaa", 10, seed=1, start_s=3.0)
    rows = [row for row in video.frame_rows() if row.frame_no not in (4, 5)]  # a still from 6.0 s on
    library.writer.add_frames({"aaaa": rows})
    library.writer.complete([replace(video.video_row(), frames=len(rows))])

    def times(asked, mode):
        return [frame.time_s for frame in library.frames_at("aaaa", asked, mode)]

    assert times([3.4, 12.9, 7.4, 7.6, 3.4], "nearest") == [3.0, 12.0, 6.0, 9.0, 3.0]
    assert times([3.0, 6.99, 8.99, 9.0, 12.9], "shown") == [3.0, 6.0, 6.0, 9.0, 12.0]
    assert times([4.0, 12.0 + 5e-7], "exact") == [4.0, 12.0]
    assert times([], "nearest") == []
    with pytest.raises(TimeOutside, match=r"got 7.400000 s .* the nearest is at 6.000000 s"):
        times([7.4], "exact")
    for outside in (2.999, 13.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TimeOutside, match=r"covers \[3.000, 13.000\) s"):
            times([outside], "nearest")
    with pytest.raises(TimeOutside, match="frame 4 "):
        library.frames("aaaa", [3, 4])
    with pytest.raises(LibraryError, match="nearest, exact or shown"):
        times([4.0], "best")


def test_frames_of_videos_whose_keys_collide(library):
    first, second = "video 245650", "video 551243"  # found by search: their hashes agree in 39 bits
    assert frame_key(first, 1) == frame_key(second, 1)
    for video_id in (first, second):
        write(library, made(video_id, 3, seed=1))
    assert library.frames(second, [1])[0].jpeg == f"jpeg {second} 1".encode()


def test_frame_keys_are_distinct_int64():
    keys = {frame_key(f"video {video}", number) for video in range(300) for number in (0, 1, 2**24 - 1)}
    assert len(keys) == 900
    assert all(0 <= key < 2**63 for key in keys)
    with pytest.raises(ValueError, match="16777216"):
        frame_key("a", 2**24)


def test_failures_count_attempts_and_clear(library):
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


def test_a_library_can_be_sent_to_another_process(library):
    write(library, made("aaaa", 3, seed=1))
    assert pickle.loads(pickle.dumps(library)).has_video("aaaa")


def test_vectors_of_another_size_are_a_programming_error(library):
    row = FrameRow(0, 0.0, 1, 1, b"", np.ones(DIM + 1, np.float16))
    with pytest.raises(ValueError, match="33"):
        library.writer.add_frames({"aaaa": [row]})


def _append(uri: str, worker: int) -> None:
    library = Library.open(uri)
    for number in range(4):
        write(library, made(f"w{worker}v{number}", 20, seed=number))


def test_workers_append_at_once(library):
    context = get_context("spawn")
    run_together([context.Process(target=_append, args=(library.uri, worker)) for worker in range(3)])
    assert len(library.videos()) == 12
    assert all(len(library.vectors(row.video_id).frame_no) == 20 for row in library.videos())


def test_indexes_change_no_result(library):
    soon = Thresholds(scalar_rows=100, vector_rows=100, stale_rows=100, fragments=3, picture_fragments=7)
    videos = [made(f"{n:04d}", 100, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(6)]
    for video in videos[:4]:
        write(library, video)
    query = unit_vectors(1, 99)[0].astype(np.float32)
    refresh(library, soon)
    for video in videos[4:]:
        write(library, video)
    before = library.search.frames(query, k=10)
    refresh(library, soon)
    assert [hit.frame_no for hit in library.search.frames(query, k=10)] == [hit.frame_no for hit in before]
    for video in videos:
        np.testing.assert_array_equal(library.vectors(video.video_id).vectors, video.vectors)
        assert library.frames(video.video_id, [42])[0].jpeg == f"jpeg {video.video_id} 42".encode()
    assert library.search.transcript("line 5")[0].video_id == "0005"
