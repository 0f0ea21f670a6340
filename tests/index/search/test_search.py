"""Searching a library: the same frames that numpy finds, transcript by words, and both fused by rank."""

from __future__ import annotations

import math

import numpy as np
import pytest

from index.errors import QueryError, UnknownVideo
from index.library import Library
from index.rows import Hit, Scope
from index.store.indexes import Thresholds, refresh
from tests.support.random_library import DIM, SETTINGS, fingerprint, found, made, numpy_search, unit_vectors, write

LINES = (
    (2.0, 5.0, "A dog barks at the red boat."),
    (5.0, 8.0, "The boat is red, it's said."),
    (20.0, 22.0, "Das Boot fährt über den See"),
    (30.0, 33.0, "Собака лает"),
    (40.0, 44.0, "犬が吠えている"),
)
VIDEOS = [
    made("aaaa", 120, seed=1, lines=LINES),
    made("bbbb", 200, seed=2, start_s=7.25),
    made("cccc", 80, seed=3, lines=((0.0, 3.0, "one dog"), (3.0, 6.0, "two cats"), (6.0, 9.0, "three dogs and a dog"))),
]
QUERIES = unit_vectors(5, seed=77).astype(np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("search") / "library"), SETTINGS, fingerprint())
    for video in VIDEOS:
        write(library, video)
    write(library, made("dddd", 300, seed=4, lines=((0.0, 9.0, "a dog"),)), complete=False)
    return library


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("min_gap_s", [0.0, 2.5, 30.0])
@pytest.mark.parametrize("chosen", [[0], [1], [0, 2], [0, 1, 2]])
def test_frames_as_numpy_finds_them(library, query, min_gap_s, chosen):
    videos = [VIDEOS[number] for number in chosen]
    ids = tuple(video.video_id for video in videos)
    hits = library.search.frames(query, Scope(ids), k=12, min_gap_s=min_gap_s)
    assert found(hits) == numpy_search(videos, query, 12, min_gap_s)
    if len(chosen) == 3:
        assert library.search.frames(query, k=12, min_gap_s=min_gap_s) == hits


def test_scores_are_cosines_and_hits_say_when(library):
    hit = library.search.frames(VIDEOS[1].vectors[17].astype(np.float32), k=1)[0]
    assert (hit.video_id, hit.frame_no, hit.time_s, hit.end_s, hit.source) == ("bbbb", 17, 24.25, 25.25, "frame")
    assert hit.score == pytest.approx(1.0, abs=1e-3)
    last = library.search.frames(VIDEOS[1].vectors[199], Scope(("bbbb",)), k=1)[0]
    assert (last.time_s, last.end_s) == (206.25, 207.25)


def test_a_time_range_is_half_open(library):
    for start_s, end_s in ((10.0, 20.0), (10.5, 10.9), (100.0, math.inf)):
        hits = library.search.frames(QUERIES[0], Scope(None, start_s, end_s), k=50)
        assert found(hits) == numpy_search(VIDEOS, QUERIES[0], 50, 0.0, start_s, end_s)
    assert [h.time_s for h in library.search.frames(QUERIES[0], Scope(("aaaa",), 3.0, 5.0), k=9)] in ([3, 4], [4, 3])
    assert library.search.frames(QUERIES[0], Scope(("aaaa",), start_s=500.0)) == []
    open_ended = library.search.frames(QUERIES[0], Scope(("aaaa",), end_s=1.0), k=9)
    assert found(open_ended) == [("aaaa", 0)]


def test_an_index_finds_the_same(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{n:04d}", 60, seed=n) for n in range(30)]
    for video in videos:
        write(library, video)
    refresh(library.tables, Thresholds(scalar_rows=100, vector_rows=100, stale_rows=10))
    for query in QUERIES:
        assert found(library.search.frames(query, k=10)) == numpy_search(videos, query, 10)
        some = Scope(tuple(video.video_id for video in videos[:25]), 10.0, 50.0)
        expected = numpy_search(videos[:25], query, 10, 3.0, 10.0, 50.0)
        assert found(library.search.frames(query, some, k=10, min_gap_s=3.0)) == expected


def test_a_scope_of_many_videos(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{n:04d}", 3, seed=n) for n in range(620)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.complete([video.video_row() for video in videos[:610]])
    ids = tuple(video.video_id for video in videos)
    reader = Library.open(library.uri)
    for query in QUERIES:
        assert found(reader.search.frames(query, k=10)) == numpy_search(videos[:610], query, 10)
        assert found(reader.search.frames(query, Scope(ids[:600]), k=10)) == numpy_search(videos[:600], query, 10)
    with pytest.raises(UnknownVideo, match="0610"):
        reader.search.frames(QUERIES[0], Scope(ids[:611]))
    library.writer.complete([video.video_row() for video in videos[610:]])
    assert found(reader.search.frames(QUERIES[0], k=10)) == numpy_search(videos, QUERIES[0], 10)


def test_words_in_any_script(library):
    def texts(query, **rest):
        return [hit.text for hit in library.search.transcript(query, **rest)]

    assert texts("dog", k=1, scope=Scope(("aaaa",))) == ["A dog barks at the red boat."]
    assert texts("SOBAKA собака") == ["Собака лает"]
    assert texts("über") == ["Das Boot fährt über den See"]
    assert texts("犬") == ["犬が吠えている"]
    assert texts("dog", k=50)[0] in ("one dog", "three dogs and a dog")
    assert texts("zebra") == []


def test_a_transcript_hit_says_where_it_is(library):
    hit = library.search.transcript('"red boat"')[0]
    assert (hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.source) == ("aaaa", 2.0, 5.0, None, "transcript")
    assert hit.text == "A dog barks at the red boat."
    assert library.search.transcript('"boat red"') == []
    assert {h.time_s for h in library.search.transcript("red boat", k=9)} == {2.0, 5.0}


def test_transcript_within_a_scope(library):
    assert {hit.video_id for hit in library.search.transcript("dog", k=9)} == {"aaaa", "cccc"}
    assert {hit.video_id for hit in library.search.transcript("dog", Scope(("cccc",)), k=9)} == {"cccc"}
    in_range = library.search.transcript("dog", Scope(None, 4.0, 7.0), k=9)
    assert {(hit.video_id, hit.time_s) for hit in in_range} == {("aaaa", 2.0), ("cccc", 6.0)}
    assert len(library.search.transcript("dog", k=2)) == 2


@pytest.mark.parametrize(
    "text", ['"', "(((", "dog^2 OR", "text:dog", "'; drop table", "\\", "~", "*", "-dog", "🐟", "a" * 5000]
)
def test_any_text_is_a_fair_query(library, text):
    assert all(isinstance(hit, Hit) for hit in library.search.transcript(text))


def test_searches_that_cannot_be_run(library):
    query = QUERIES[0]
    bad = [
        (lambda: library.search.transcript("  "), "empty query"),
        (lambda: library.search.frames(query, k=0), "k=0"),
        (lambda: library.search.frames(query, min_gap_s=-1.0), "-1.0 s"),
        (lambda: library.search.frames(query, min_gap_s=math.nan), "nan s"),
        (lambda: library.search.frames(query, Scope(None, 5.0, 5.0)), "from 5.0 to 5.0 s"),
        (lambda: library.search.frames(query, Scope(None, math.nan)), "is not a number"),
        (lambda: library.search.frames(query, Scope(())), "no video"),
        (lambda: library.search.frames(np.ones(DIM + 1)), r"shape \(33,\); this library's space has 32"),
        (lambda: library.search.frames(np.zeros(DIM)), "zeros"),
        (lambda: library.search.frames(np.full(DIM, np.nan)), "not finite"),
    ]
    for run, message in bad:
        with pytest.raises(QueryError, match=message):
            run()
    for unknown in ("dddd", "nobody"):  # dddd was never completed
        with pytest.raises(UnknownVideo, match=unknown):
            library.search.frames(query, Scope((unknown,)))


def test_fused_hits(library):
    """A line and the frame shown while it is said are one hit, ahead of what only one search found."""
    query = VIDEOS[0].vectors[3].astype(np.float32)
    hits = library.search.hybrid("dog barks", query, k=10)
    best = hits[0]
    assert (best.video_id, best.frame_no, best.time_s, best.source) == ("aaaa", 3, 3.0, "both")
    assert best.text == "A dog barks at the red boat."
    assert best.end_s == 5.0
    assert best.score == pytest.approx(2 / 61)
    assert len(hits) == 10
    assert {"frame", "both"} <= {hit.source for hit in hits}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    apart = library.search.hybrid("dog barks", query, Scope(("aaaa",)), k=10, min_gap_s=5.0)
    times = sorted(hit.time_s for hit in apart)
    assert len(times) == 10
    assert min(np.diff(times)) >= 5.0


def frame(time_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, time_s, time_s + 1.0, int(time_s), 0.5, None, "frame")


def line(start_s: float, end_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, start_s, end_s, None, 9.0, f"said at {start_s}", "transcript")
