"""Searching a library: frames as numpy finds them, words, captions and detections, and several fused by rank."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.errors import DamagedRows, QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import CaptionRow, DetectionRow, Hit, Scope, SegmentRow
from kinodex.index.search.search import EVERYWHERE
from kinodex.index.search.words import candidates
from kinodex.index.store.database import FILE_FORMAT, table_place
from kinodex.index.store.indexes import AFTER_RUN, Thresholds, forget_deleted, optimize, refresh
from kinodex.index.store.quiet_lance import lance
from tests.index.test_annotations import scene, summarised
from tests.support.libraries.random_library import (
    DIM,
    SETTINGS,
    caption,
    detection,
    empty_library,
    fingerprint,
    found,
    made,
    numpy_search,
    spoken,
    unit_vectors,
    write,
)
from tests.support.libraries.searched_library import VIDEOS, make_searched
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences

QUERIES = unit_vectors(5, seed=77).astype(np.float32)


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Library:
    return make_searched(tmp_path_factory.mktemp("search") / "library")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("min_gap_s", [0.0, 2.5, 30.0])
@pytest.mark.parametrize("chosen", [[0], [1], [0, 2], [0, 1, 2]])
def test_frames_as_numpy_finds_them(searched, query, min_gap_s, chosen):
    videos = [VIDEOS[number] for number in chosen]
    ids = tuple(video.video_id for video in videos)
    hits = searched.search.frames(query, Scope(ids), k=12, min_gap_s=min_gap_s)
    assert found(hits) == numpy_search(videos, query, 12, min_gap_s)
    if len(chosen) == 3:
        assert searched.search.frames(query, k=12, min_gap_s=min_gap_s) == hits


def test_scores_are_cosines_and_hits_say_when(searched):
    hit = searched.search.frames(VIDEOS[1].vectors[17].astype(np.float32), k=1)[0]
    assert (hit.video_id, hit.frame_no, hit.time_s, hit.end_s, hit.source) == ("bbbb", 17, 24.25, 25.25, "frame")
    assert hit.score == pytest.approx(1.0, abs=1e-3)
    last = searched.search.frames(VIDEOS[1].vectors[199], Scope(("bbbb",)), k=1)[0]
    assert (last.time_s, last.end_s) == (206.25, 207.25)


def test_a_time_range_is_half_open(searched):
    for start_s, end_s in ((10.0, 20.0), (10.5, 10.9), (100.0, math.inf)):
        hits = searched.search.frames(QUERIES[0], Scope(None, start_s, end_s), k=50)
        assert found(hits) == numpy_search(VIDEOS, QUERIES[0], 50, 0.0, start_s, end_s)
    assert [h.time_s for h in searched.search.frames(QUERIES[0], Scope(("aaaa",), 3.0, 5.0), k=9)] in ([3, 4], [4, 3])
    assert searched.search.frames(QUERIES[0], Scope(("aaaa",), start_s=500.0)) == []
    open_ended = searched.search.frames(QUERIES[0], Scope(("aaaa",), end_s=1.0), k=9)
    assert found(open_ended) == [("aaaa", 0)]


def test_an_index_finds_the_same(tmp_path):
    searched = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{n:04d}", 60, seed=n) for n in range(30)]
    for video in videos:
        write(searched, video)
    refresh(searched.tables, Thresholds(scalar_rows=100, vector_rows=100, stale_rows=10))
    for query in QUERIES:
        assert found(searched.search.frames(query, k=10)) == numpy_search(videos, query, 10)
        some = Scope(tuple(video.video_id for video in videos[:25]), 10.0, 50.0)
        expected = numpy_search(videos[:25], query, 10, 3.0, 10.0, 50.0)
        assert found(searched.search.frames(query, some, k=10, min_gap_s=3.0)) == expected


def test_a_scope_of_many_videos(tmp_path):
    searched = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{n:04d}", 3, seed=n) for n in range(620)]
    searched.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    searched.writer.complete([video.video_row() for video in videos[:610]])
    ids = tuple(video.video_id for video in videos)
    reader = Library.open(searched.uri)
    for query in QUERIES:
        assert found(reader.search.frames(query, k=10)) == numpy_search(videos[:610], query, 10)
        assert found(reader.search.frames(query, Scope(ids[:600]), k=10)) == numpy_search(videos[:600], query, 10)
    with pytest.raises(UnknownVideo, match="0610"):
        reader.search.frames(QUERIES[0], Scope(ids[:611]))
    searched.writer.complete([video.video_row() for video in videos[610:]])
    assert found(reader.search.frames(QUERIES[0], k=10)) == numpy_search(videos, QUERIES[0], 10)


def test_words_in_any_script(searched):
    def texts(query, **rest):
        return [hit.text for hit in searched.search.transcript(query, **rest)]

    assert texts("dog", k=1, scope=Scope(("aaaa",))) == ["A dog barks at the red boat."]
    assert texts("SOBAKA собака") == ["Собака лает"]
    assert texts("über") == ["Das Boot fährt über den See"]
    assert texts("犬") == ["犬が吠えている"]
    assert texts("dog", k=50)[0] in ("one dog", "three dogs and a dog")
    assert texts("zebra") == []


def test_a_transcript_hit_says_where_it_is(searched):
    hit = searched.search.transcript('"red boat"')[0]
    assert (hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.source) == ("aaaa", 2.0, 5.0, None, "transcript")
    assert hit.text == "A dog barks at the red boat."
    assert searched.search.transcript('"boat red"') == []
    assert {h.time_s for h in searched.search.transcript("red boat", k=9)} == {2.0, 5.0}


def test_transcript_within_a_scope(searched):
    assert {hit.video_id for hit in searched.search.transcript("dog", k=9)} == {"aaaa", "cccc"}
    assert {hit.video_id for hit in searched.search.transcript("dog", Scope(("cccc",)), k=9)} == {"cccc"}
    in_range = searched.search.transcript("dog", Scope(None, 4.0, 7.0), k=9)
    assert {(hit.video_id, hit.time_s) for hit in in_range} == {("aaaa", 2.0), ("cccc", 6.0)}
    assert len(searched.search.transcript("dog", k=2)) == 2


@pytest.mark.parametrize(
    "text", ['"', "(((", "dog^2 OR", "text:dog", "'; drop table", "\\", "~", "*", "-dog", "🐟", "a" * 5000]
)
def test_any_text_is_a_fair_query(searched, text):
    assert all(isinstance(hit, Hit) for hit in searched.search.transcript(text))


def test_searches_that_cannot_be_run(searched):
    query = QUERIES[0]
    bad = [
        (lambda: searched.search.transcript("  "), "empty query"),
        (lambda: searched.search.frames(query, k=0), "k=0"),
        (lambda: searched.search.frames(query, min_gap_s=-1.0), "-1.0 s"),
        (lambda: searched.search.frames(query, min_gap_s=math.nan), "nan s"),
        (lambda: searched.search.frames(query, Scope(None, 5.0, 5.0)), "from 5.0 to 5.0 s"),
        (lambda: searched.search.frames(query, Scope(None, math.nan)), "is not a number"),
        (lambda: searched.search.frames(query, Scope(())), "no video"),
        (lambda: searched.search.frames(np.ones(DIM + 1)), r"shape \(33,\); this library's space has 32"),
        (lambda: searched.search.frames(np.zeros(DIM)), "zeros"),
        (lambda: searched.search.frames(np.full(DIM, np.nan)), "not finite"),
    ]
    for run, message in bad:
        with pytest.raises(QueryError, match=message):
            run()
    for unknown in ("dddd", "nobody"):  # dddd was never completed
        with pytest.raises(UnknownVideo, match=unknown):
            searched.search.frames(query, Scope((unknown,)))


def test_fused_hits(searched):
    """A line and the frame shown while it is said are one hit, ahead of what only one search found."""
    query = VIDEOS[0].vectors[3].astype(np.float32)
    hits = searched.search.hybrid("dog barks", query, k=10)
    best = hits[0]
    assert (best.video_id, best.frame_no, best.time_s, best.source) == ("aaaa", 3, 3.0, "both")
    assert best.text == "A dog barks at the red boat."
    assert best.end_s == 5.0
    assert best.score == pytest.approx(2 / 61)
    assert len(hits) == 10
    assert {"frame", "both"} <= {hit.source for hit in hits}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    apart = searched.search.hybrid("dog barks", query, Scope(("aaaa",)), k=10, min_gap_s=5.0)
    times = sorted(hit.time_s for hit in apart)
    assert len(times) == 10
    assert min(np.diff(times)) >= 5.0


def frame(time_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, time_s, time_s + 1.0, int(time_s), 0.5, None, "frame")


def line(start_s: float, end_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, start_s, end_s, None, 9.0, f"said at {start_s}", "transcript")


TEXTS = ("A red kite over the sea", "Two dogs on a boat", "An empty desert")


MEANINGS = unit_vectors(3, seed=50)


@pytest.fixture
def captioned(tmp_path) -> Library:
    captioned = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(captioned, made(video_id, 30, seed=number, lines=((2.0, 4.0, "Look, a kite!"),)))
    return captioned


def add_captions_of(
    captioned: Library, model: str, *video_ids: str, texts=TEXTS, meanings=MEANINGS, complete: bool = True
) -> None:
    rows = [caption(n, text, meanings[n]) for n, text in enumerate(texts)]
    captioned.additions.add_captions(dict.fromkeys(video_ids, rows), model)
    if complete:
        assert captioned.additions.complete("captions", model, dict.fromkeys(video_ids, len(rows)), {}) == ()


def texts(hits: list[Hit]) -> list[str | None]:
    return [hit.text for hit in hits]


def test_segments_carry_the_captions_of_the_newest_model(captioned):
    segments = [SegmentRow("", n, 10.0 * n, 10.0 * n + 10.0, "shot") for n in range(3)]
    captioned.writer.add_segments({"aaaa": segments})
    assert [segment.caption for segment in captioned.segments("aaaa")] == [None, None, None]
    add_captions_of(captioned, "small", "aaaa")
    add_captions_of(captioned, "large", "aaaa", texts=("A kite", "Dogs", "Sand"))
    add_captions_of(captioned, "broken", "aaaa", texts=("never", "seen", "at all"), complete=False)
    first = captioned.segments("aaaa")[0]
    assert first == SegmentRow("aaaa", 0, 0.0, 10.0, "shot", "A kite", 0.5, "large")
    assert [row.text for row in captioned.captions("aaaa", "small")] == list(TEXTS)
    assert captioned.captions("aaaa")[2] == CaptionRow("aaaa", 2, 20.0, 30.0, "Sand", 0.5, "large")
    assert captioned.captions("aaaa", "broken") == captioned.captions("bbbb") == []


def test_captions_are_counted_as_they_are_read(captioned):
    add_captions_of(captioned, "small", "aaaa", "bbbb")
    add_captions_of(captioned, "large", "aaaa", texts=("A kite", "Dogs"), meanings=MEANINGS[:2])
    add_captions_of(captioned, "broken", "bbbb", "cccc", texts=("never",), meanings=MEANINGS[:1], complete=False)
    counts = captioned.additions.counts("captions")
    assert counts == {"aaaa": 2, "bbbb": 3}
    assert all(len(captioned.captions(video_id)) == count for video_id, count in counts.items())


def test_captions_by_words(captioned):
    add_captions_of(captioned, "m", "aaaa", "bbbb")
    add_captions_of(captioned, "m", "cccc", complete=False)
    hits = captioned.search.captions("red kite")
    assert {(hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.source) for hit in hits} == {
        ("aaaa", 0.0, 10.0, None, "caption"),
        ("bbbb", 0.0, 10.0, None, "caption"),
    }
    assert len(captioned.search.captions("kite", k=1)) == 1
    assert texts(captioned.search.captions('"boat dogs"')) == []
    assert texts(captioned.search.captions("desert", scope=Scope(("bbbb",)))) == ["An empty desert"]
    assert captioned.search.captions("desert", scope=Scope(None, 0.0, 20.0)) == []
    assert len(captioned.search.captions("desert", scope=Scope(None, 19.0, 21.0))) == 2


def test_only_the_newest_captions_are_found_however_many_older_there_are(captioned):
    for number in range(6):
        add_captions_of(captioned, f"old {number}", "aaaa", texts=("a zebra", "a zebra", "a zebra"))
    add_captions_of(
        captioned, "new", "aaaa", texts=("nothing", "nothing", "one zebra, far away, behind a very long fence")
    )
    assert texts(captioned.search.captions("zebra", k=1)) == ["one zebra, far away, behind a very long fence"]


def test_captions_by_meaning(captioned):
    add_captions_of(captioned, "m", "aaaa")
    add_captions_of(captioned, "m", "bbbb", meanings=[None, None, MEANINGS[2]])
    hits = captioned.search.captions("zebra", MEANINGS[2].astype(np.float32), k=2)
    assert [(hit.video_id, hit.time_s) for hit in hits] == [("aaaa", 20.0), ("bbbb", 20.0)]
    both = captioned.search.captions("dogs", MEANINGS[1].astype(np.float32), Scope(("aaaa",)))
    assert both[0].text == "Two dogs on a boat"
    assert both[0].score == pytest.approx(2 / 61)
    with pytest.raises(QueryError, match=r"shape \(5,\)"):
        captioned.search.captions("dogs", np.ones(5))


def test_searches_of_captions_that_cannot_be_run(captioned):
    with pytest.raises(QueryError, match="empty query"):
        captioned.search.captions(" ")
    with pytest.raises(UnknownVideo, match="nobody"):
        captioned.search.captions("kite", scope=Scope(("nobody",)))


def test_speech_of_the_newest_model_joins_the_subtitles(captioned):
    for model in ("tiny", "large"):
        captioned.additions.add_speech({"aaaa": [spoken(4, f"{model} heard a kite")]}, model)
        captioned.additions.complete("speech", model, {"aaaa": 1}, {})
    captioned.additions.add_speech({"aaaa": [spoken(5, "half a kite")]}, "broken")
    lines = captioned.transcript("aaaa")
    assert [(line.text, line.source, line.model) for line in lines] == [
        ("Look, a kite!", "sidecar", None),
        ("large heard a kite", "asr", "large"),
    ]
    found = texts(captioned.search.transcript("kite", Scope(("aaaa",))))
    assert sorted(map(str, found)) == ["Look, a kite!", "large heard a kite"]


def test_frames_lines_and_captions_are_fused(captioned):
    """A moment that all three find comes before one that two find."""
    add_captions_of(captioned, "m", "aaaa", "bbbb")
    video = made("aaaa", 30, seed=0)
    best = captioned.search.hybrid("kite", video.vectors[3].astype(np.float32), k=5)[0]
    assert (best.video_id, best.frame_no, best.end_s, best.source) == ("aaaa", 3, 10.0, "both")
    assert best.text == "Look, a kite!"
    assert best.score > 2 / 61


def hit_in(video_id: str, time_s: float, end_s: float, source) -> Hit:
    return Hit(video_id, time_s, end_s, None, 1.0, f"{source} {time_s}", source)


def test_indexes_of_captions_change_no_result(captioned):
    add_captions_of(captioned, "wordless", "aaaa", "bbbb", texts=["kite"] * 60, meanings=[None] * 60)
    # 120 captions without a vector
    refresh(captioned.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_lines=0))
    meanings = unit_vectors(60, seed=51)
    add_captions_of(captioned, "m", "aaaa", "bbbb", texts=[f"kite {n}" for n in range(60)], meanings=meanings)
    before = captioned.search.captions("7 kite", meanings[7].astype(np.float32), k=3)
    for _ in range(2):
        refresh(captioned.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_rows=0, stale_lines=0, fragments=1))
    assert captioned.search.captions("7 kite", meanings[7].astype(np.float32), k=3) == before
    assert [h.text for h in before[:2]] == ["kite 7", "kite 7"]
    assert meanings.shape == (60, DIM)


@pytest.fixture
def detected(tmp_path) -> Library:
    detected = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(detected, made(video_id, 20, seed=number))
    add_detections_of(
        detected,
        "closed",
        "aaaa",
        [detection(3, "Dog", 0.5, 1), detection(4, "dog", 0.75, 1), detection(4, "cat", 0.25)],
    )
    add_detections_of(detected, "closed", "bbbb", [detection(9, "dog", 0.875)])
    add_detections_of(detected, "open", "aaaa", [detection(4, "dog", 0.625), detection(12, "  Red  kite", 0.5)])
    detected.additions.add_detections({"cccc": [detection(1, "dog", 1.0)]}, "closed")
    return detected


def add_detections_of(detected: Library, model: str, video_id: str, rows) -> None:
    detected.additions.add_detections({video_id: rows}, model)
    assert detected.additions.complete("detections", model, {video_id: len(rows)}, {}) == ()


def scores(hits):
    return [(hit.video_id, hit.frame_no, hit.score) for hit in hits]


def test_detections_of_a_video(detected):
    rows = detected.detections("aaaa")
    assert [(row.time_s, row.label, row.score, row.model) for row in rows] == [
        (3.0, "dog", 0.5, "closed"),
        (4.0, "dog", 0.75, "closed"),
        (4.0, "dog", 0.625, "open"),
        (4.0, "cat", 0.25, "closed"),
        (12.0, "red kite", 0.5, "open"),
    ]
    assert rows[0] == DetectionRow("aaaa", 3, 3.0, "dog", 0.5, (0.125, 0.25, 0.5, 0.75), 1, "closed")
    assert [row.label for row in detected.detections("aaaa", 4.0, 12.0, min_score=0.5)] == ["dog", "dog"]
    assert [row.time_s for row in detected.detections("aaaa", label=" RED kite ")] == [12.0]
    assert detected.detections("cccc") == []


def test_frames_with_a_label_best_first(detected):
    hits = detected.search.detections("DOG")
    assert scores(hits) == [("bbbb", 9, 0.875), ("aaaa", 4, 0.75), ("aaaa", 3, 0.5)]
    best = hits[0]
    assert (best.time_s, best.end_s, best.text, best.source) == (9.0, 10.0, "dog", "detection")
    assert scores(detected.search.detections("dog", k=1)) == [("bbbb", 9, 0.875)]
    assert scores(detected.search.detections("dog", min_score=0.8)) == [("bbbb", 9, 0.875)]
    assert scores(detected.search.detections("dog", scope=Scope(("aaaa",), end_s=4.0))) == [("aaaa", 3, 0.5)]
    assert scores(detected.search.detections("dog", min_gap_s=2.0)) == [("bbbb", 9, 0.875), ("aaaa", 4, 0.75)]
    assert detected.search.detections("zebra") == []


def test_indexes_of_detections_change_no_result(detected):
    detected.additions.discard_leftovers("detections", "closed")
    add_detections_of(
        detected, "closed", "cccc", [detection(n % 20, ("dog", "cat", "cow")[n % 3], n / 512) for n in range(400)]
    )
    labels = ("dog", "cat", "cow", "red kite")
    before = [detected.search.detections(label, k=7) for label in labels]
    refresh(detected.tables, Thresholds(scalar_rows=100, fragments=1))
    assert [detected.search.detections(label, k=7) for label in labels] == before
    assert before[2][0].score == 398 / 512
    assert len(detected.detections("cccc", label="cow")) == 133


def test_searches_of_detections_that_cannot_be_run(detected):
    with pytest.raises(QueryError, match="empty query"):
        detected.search.detections("")
    with pytest.raises(UnknownVideo, match="nobody"):
        detected.search.detections("dog", scope=Scope(("nobody",)))


# Queries that cannot be run are refused, and too few hits are fetched again.


def test_k_is_reached_however_many_hits_crowd(tmp_path):
    searched = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    crowd = np.tile(unit_vectors(1, seed=5), (400, 1))
    rest = unit_vectors(100, seed=6)
    video = made("aaaa", 500, seed=7)
    video.vectors[:] = np.concatenate([crowd, rest])
    write(searched, video)
    query = crowd[0].astype(np.float32)
    hits = searched.search.frames(query, k=8, min_gap_s=100.0)
    assert found(hits) == numpy_search([video], query, 8, 100.0)
    assert len(searched.search.frames(query, k=499, min_gap_s=1.0)) == 499


def test_a_walk_through_a_smaller_graph_keeps_fewer_candidates():
    assert candidates(10, 1 << 20) == candidates(10, 10**9) == 600
    assert candidates(10, 1 << 18) == 300
    assert candidates(10, 0) == candidates(10, 1000) == 100
    assert candidates(100, 1 << 18) == 500  # never fewer than are compared again
    assert candidates(100, 1 << 20) == 1000


# Vectors that are no numbers any more are an error where they would be searched, and nowhere else.

FRAMES = 6


ANY = made("any", 1, seed=9).vectors[0].astype(np.float32)


@pytest.fixture
def two_films(tmp_path: Path) -> Library:
    two_films = empty_library(tmp_path / "library", SETTINGS, fingerprint())
    for seed, video_id in enumerate(("aaaa", "bbbb")):
        video = made(video_id, FRAMES, seed, lines=((0.0, 2.0, "a dog in the snow"),))
        write(two_films, video)
        captions = [caption(0, "a dog", video.vectors[0]), caption(1, "no vector")]
        two_films.additions.add_captions({video_id: captions}, "m")
        assert two_films.additions.complete("captions", "m", {video_id: 2}, {}) == ()
    add_sentences(two_films, ConceptModel())
    return two_films


def damage(two_films: Library, table: str, number: float) -> Library:
    """Put a number into the last vector of the first video, in the files; opened anew."""
    rows = two_films.tables.rows(table).sort_by("video_id")
    column = rows["vector"].combine_chunks()
    at = max(n for n, row in enumerate(rows.to_pylist()) if row["video_id"] == "aaaa" and row["vector"] is not None)
    vectors = column.to_pylist()
    vectors[at] = [np.float16(number), *map(np.float16, vectors[at][1:])]
    field = rows.schema.field("vector")
    rows = rows.set_column(rows.schema.get_field_index("vector"), field, pa.array(vectors, field.type))
    lance.write_dataset(rows, table_place(two_films.uri, table), mode="overwrite", data_storage_version=FILE_FORMAT)
    return Library.open(two_films.uri)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_search_that_would_pass_over_a_vector_is_refused(two_films: Library, number: float) -> None:
    assert len(two_films.search.frames(ANY, k=20)) == 2 * FRAMES
    damaged = damage(two_films, two_films.vectors_table, number)
    for scope in (Scope(), Scope(("aaaa", "bbbb")), Scope(("aaaa",))):
        with pytest.raises(DamagedRows, match=r"a vector of video aaaa .* not as it was written; `kinodex maintain"):
            damaged.search.frames(ANY, scope, k=2)
    assert len(damaged.search.frames(ANY, Scope(("bbbb",)), k=20)) == FRAMES
    assert len(damaged.search.frames(ANY, Scope(("aaaa",), end_s=FRAMES - 1.0), k=20)) == FRAMES - 1
    with pytest.raises(DamagedRows, match="a vector of video aaaa"):
        damaged.in_memory("aaaa")
    assert len(damaged.vectors("bbbb").vectors) == FRAMES


def test_captions_and_sentences_too(two_films: Library) -> None:
    model = ConceptModel()
    sentences = next(name for name in two_films.tables.names() if name.startswith("sentences_"))
    damaged = damage(damage(two_films, "captions", np.nan), sentences, np.nan)
    for search in (
        lambda: damaged.search.captions("dog", ANY),
        lambda: damaged.search.words("dog", meaning=model.meaning("dog")),
        lambda: damaged.caption_vectors("aaaa"),
        lambda: damaged.sentences.vectors("aaaa", model.space),
    ):
        with pytest.raises(DamagedRows, match="a vector of video aaaa"):
            search()
    assert len(damaged.search.captions("dog")) == 2
    assert len(damaged.caption_vectors("bbbb").vectors) == 1


def test_a_video_that_is_written_again_is_searched_again(two_films: Library) -> None:
    damaged = damage(two_films, two_films.vectors_table, np.nan)
    with pytest.raises(DamagedRows):
        damaged.search.frames(ANY, k=20)
    damaged.writer.discard("aaaa")
    assert len(damaged.search.frames(ANY, k=20)) == FRAMES
    write(damaged, made("aaaa", FRAMES, seed=0))
    assert len(damaged.search.frames(ANY, k=20)) == 2 * FRAMES


# Search of chapters by words: titles and summaries, of the newest model, with and without joined fragments.


@pytest.fixture
def two_plain(tmp_path):
    two_plain = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aa", "bb")):
        write(two_plain, made(video_id, 8, number))
    return two_plain


@pytest.fixture
def described(two_plain):
    chapters = [
        scene("aa", "chapter", 0, 0.0, 4.0, title="The harbour", text="A boat leaves."),
        scene("aa", "chapter", 1, 4.0, 8.0, title="Supper", text="Onions fry in a pan."),
        scene("aa", "scene", 0, 0.0, 4.0, title="The harbour", text="A boat."),
    ]
    summarised(two_plain, "aa", chapters)
    summarised(two_plain, "bb", [scene("bb", "chapter", 0, 0.0, 8.0, title="", text="A harbour at night.")])
    return two_plain


def chapters(two_plain, text, scope=EVERYWHERE, k=10):
    return [(hit.video_id, hit.time_s) for hit in two_plain.search.chapters(text, scope, k)]


def test_titles_and_summaries_are_found(described):
    assert set(chapters(described, "harbour")) == {("aa", 0.0), ("bb", 0.0)}
    assert chapters(described, "onions") == [("aa", 4.0)]
    assert chapters(described, "supper pan") == [("aa", 4.0)]
    (hit,) = described.search.chapters("supper")
    assert (hit.text, hit.end_s, hit.source) == ("Supper\nOnions fry in a pan.", 8.0, "chapter")
    assert hit.score == hit.bm25 and hit.bm25 > 0


def test_scopes_and_numbers(described):
    assert chapters(described, "harbour", Scope(("bb",))) == [("bb", 0.0)]
    assert chapters(described, "boat supper", Scope(None, 5.0)) == [("aa", 4.0)]
    assert len(chapters(described, "harbour", k=1)) == 1
    with pytest.raises(QueryError):
        described.search.chapters(" ")


def test_a_library_without_chapters(two_plain):
    assert chapters(two_plain, "harbour") == []


def test_a_newer_model_takes_the_place_of_an_older_one(described):
    summarised(described, "aa", [scene("aa", "chapter", 0, 0.0, 8.0, "n", title="Lighthouse", text="A tower.")], "n")
    assert chapters(described, "onions") == []
    assert chapters(described, "lighthouse tower") == [("aa", 0.0)]


def test_both_columns_are_found_after_maintenance(described):
    for step in (refresh, lambda tables: optimize(tables, "scenes", AFTER_RUN), lambda t: forget_deleted(t, "scenes")):
        step(described.tables)
        reader = Library.open(described.uri)
        assert chapters(reader, "supper") == chapters(reader, "onions") == [("aa", 4.0)]
