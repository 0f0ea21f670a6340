"""Searching a library: frames as numpy finds them, words, captions and detections, and several fused by rank."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.errors import DamagedRows, QueryError, UnknownVideo
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import CaptionRow, DetectionRow, FrameVectors, Hit, Scope, SegmentRow
from kinodex.index.search.held_rows import top_positions
from kinodex.index.search.in_memory import InMemory
from kinodex.index.search.queries import candidates
from kinodex.index.store.database import FILE_FORMAT
from kinodex.index.store.indexes import AFTER_RUN, Thresholds, forget_deleted, optimize, refresh
from kinodex.index.store.places import table_place
from kinodex.index.store.quiet_lance import lance
from tests.index.test_annotations import scene, summarised
from tests.support.libraries.random_library import (
    DIM,
    SETTINGS,
    MadeVideo,
    add_stage,
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
    write_all,
)
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences

QUERIES = unit_vectors(3, seed=77).astype(np.float32)
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


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Library:
    """Three videos with lines in four scripts, and one that is not complete."""
    library = Library.create(str(tmp_path_factory.mktemp("search") / "library"), SETTINGS, fingerprint())
    for video in VIDEOS:
        write(library, video)
    write(library, made("dddd", 300, seed=4, lines=((0.0, 9.0, "a dog"),)), complete=False)
    return library


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[Library, list[MadeVideo]]:
    """160 short videos with a place each; `far` is true of the half with nothing like the first query."""
    library = empty_library(tmp_path_factory.mktemp("many") / "library", SETTINGS, fingerprint())
    lines = tuple((float(n), n + 1.0, "a dog") for n in range(3))
    videos = [made(f"{number:04x}", 4, seed=number, lines=lines) for number in range(160)]
    write_all(library, videos)
    by_likeness = sorted(videos, key=lambda video: (video.vectors.astype(np.float32) @ QUERIES[0]).max())
    rows = {video.video_id: {"place": place, "far": place < 80} for place, video in enumerate(by_likeness)}
    library.metadata.write(rows)
    return library, by_likeness


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["place >= 0", "place >= 60", "far", "place < 40", "place < 15", "place = 159"])
def test_the_videos_of_a_condition_are_searched_whatever_their_share_and_however_far_they_are(many, condition):
    """Few exactly, some by a filter of their ids; of a large share by what others leave over, or else by the filter."""
    library, videos = many
    chosen = [
        each for n, each in enumerate(videos) if eval(condition.replace(" = ", " == "), {"place": n, "far": n < 80})
    ]
    among = library.where(condition)
    ids = {video.video_id for video in chosen}
    for query, k, min_gap_s in product(QUERIES, (1, 20), (0.0, 2.0)):
        assert found(among.search.frames(query, k=k, min_gap_s=min_gap_s)) == numpy_search(chosen, query, k, min_gap_s)
    hits = among.search.lines("speech", "a dog", k=len(chosen) * 3)
    assert Counter(hit.video_id for hit in hits) == dict.fromkeys(ids, 3)
    assert [hit.video_id for hit in among.search.lines("speech", "dog", k=5)] == sorted(ids)[:1] * 3 + sorted(ids)[
        1:2
    ] * 2
    last = chosen[-1]
    scope = Scope((last.video_id,), 1.0, 3.0)
    assert found(among.search.frames(QUERIES[0], scope, k=9)) == numpy_search([last], QUERIES[0], 9, 0.0, 1.0, 3.0)


def texts(hits) -> list[str | None]:
    return [hit.text for hit in hits]


@pytest.mark.slow
def test_frames_as_numpy_finds_them(searched):
    for chosen in ([0], [1], [0, 2], [0, 1, 2]):
        videos = [VIDEOS[number] for number in chosen]
        scope = Scope(tuple(video.video_id for video in videos))
        for query, min_gap_s in product(QUERIES, (0.0, 2.5, 30.0)):
            hits = searched.search.frames(query, scope, k=12, min_gap_s=min_gap_s)
            assert found(hits) == numpy_search(videos, query, 12, min_gap_s), (chosen, min_gap_s)
            if len(chosen) == 3:
                everywhere = searched.search.frames(query, k=12, min_gap_s=min_gap_s)  # in memory, all of it
                assert found(everywhere) == found(hits)
                assert [hit.score for hit in everywhere] == pytest.approx([hit.score for hit in hits], abs=1e-6)
            if chosen == [1]:
                near = searched.in_memory("bbbb").search(3 * query, k=12, min_gap_s=min_gap_s)
                assert [(each.frame_no, each.time_s) for each in near] == [(hit.frame_no, hit.time_s) for hit in hits]
                np.testing.assert_allclose([each.cosine for each in near], [hit.score for hit in hits], atol=1e-5)


def test_hits_say_when_and_a_time_range_is_half_open(searched):
    hit = searched.search.frames(VIDEOS[1].vectors[17].astype(np.float32), k=1)[0]
    assert (hit.video_id, hit.frame_no, hit.time_s, hit.end_s, hit.found_in) == ("bbbb", 17, 24.25, 25.25, "frames")
    assert hit.score == pytest.approx(1.0, abs=1e-3)
    last = searched.search.frames(VIDEOS[1].vectors[199], Scope(("bbbb",)), k=1)[0]
    assert (last.time_s, last.end_s) == (206.25, 207.25)
    query = QUERIES[0]
    for start_s, end_s in ((10.0, 20.0), (10.5, 10.9), (100.0, math.inf)):
        hits = searched.search.frames(query, Scope(None, start_s, end_s), k=50)
        assert found(hits) == numpy_search(VIDEOS, query, 50, 0.0, start_s, end_s)
    assert {hit.time_s for hit in searched.search.frames(query, Scope(("aaaa",), 3.0, 5.0), k=9)} == {3, 4}
    assert searched.search.frames(query, Scope(("aaaa",), start_s=500.0)) == []
    assert found(searched.search.frames(query, Scope(("aaaa",), end_s=1.0), k=9)) == [("aaaa", 0)]


def test_words_in_any_script_and_scope(searched):
    search = partial(searched.search.lines, "speech")
    for query, expected in {
        "SOBAKA собака": ["Собака лает"],
        "über": ["Das Boot fährt über den See"],
        "犬": ["犬が吠えている"],
        "zebra": [],
        '"boat red"': [],
    }.items():
        assert texts(search(query)) == expected, query
    assert texts(search("dog", k=1, scope=Scope(("aaaa",)))) == ["A dog barks at the red boat."]
    assert texts(search("dog", k=50))[0] in ("one dog", "three dogs and a dog")
    hit = search('"red boat"')[0]
    assert (hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.found_in) == ("aaaa", 2.0, 5.0, None, "speech")
    assert {each.time_s for each in search("red boat", k=9)} == {2.0, 5.0}
    assert {each.video_id for each in search("dog", k=9)} == {"aaaa", "cccc"}
    in_range = search("dog", Scope(None, 4.0, 7.0), k=9)
    assert {(each.video_id, each.time_s) for each in in_range} == {("aaaa", 2.0), ("cccc", 6.0)}
    assert len(search("dog", k=2)) == 2
    assert [len(search("dog", Scope(("cccc",)), min_gap_s=gap_s)) for gap_s in (6.0, 6.1)] == [2, 1]
    for text in ('"', "(((", "dog^2 OR", "text:dog", "'; drop table", "\\", "~", "*", "-dog", "🐟", "a" * 5000):
        assert all(isinstance(each, Hit) for each in search(text)), text


def test_searches_that_cannot_be_run(searched):
    query, search = QUERIES[0], searched.search
    bad: list[Any] = [
        (lambda: search.frames(query, k=0), "k=0"),
        (lambda: search.frames(query, min_gap_s=-1.0), "-1.0 s"),
        (lambda: search.frames(query, min_gap_s=math.nan), "nan s"),
        (lambda: search.frames(query, Scope(None, 5.0, 5.0)), "from 5.0 to 5.0 s"),
        (lambda: search.frames(query, Scope(None, math.nan)), "is not a number"),
        (lambda: search.frames(query, Scope(())), "no video"),
        (lambda: search.frames(np.ones(DIM + 1)), r"shape \(33,\); this library's space has 32"),
        (lambda: search.frames(np.zeros(DIM)), "zeros"),
        (lambda: searched.in_memory("bbbb").search(np.zeros(DIM, np.float32), k=1), "zeros"),
        (lambda: search.frames(np.full(DIM, np.nan)), "not finite"),
        (lambda: search.captions("dogs", np.ones(5)), r"shape \(5,\)"),
    ]
    lines = [partial(search.lines, kind) for kind in LINE_KINDS]
    by_words = [*lines, search.captions, search.detections, search.chapters, search.words]
    for run, message in [*bad, *((partial(each, "  "), "empty query") for each in by_words)]:
        with pytest.raises(QueryError, match=message):
            run()
    for unknown, each in product(("dddd", "nobody"), by_words):  # dddd was never completed
        with pytest.raises(UnknownVideo, match=unknown):
            each("dog", scope=Scope((unknown,)))
    with pytest.raises(UnknownVideo, match="nobody"):
        search.frames(query, Scope(("nobody",)))


def test_fused_hits(searched):
    """A line and the frame shown while it is said are one hit, ahead of what only one search found."""
    query = VIDEOS[0].vectors[3].astype(np.float32)
    hits = searched.search.hybrid("dog barks", query, k=10)
    best = hits[0]
    assert (best.video_id, best.frame_no, best.time_s, best.end_s, best.found_in) == ("aaaa", 3, 3.0, 5.0, "several")
    assert (best.text, best.score) == ("A dog barks at the red boat.", pytest.approx(2 / 61))
    assert len(hits) == 10
    assert {"frames", "several"} <= {hit.found_in for hit in hits}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    apart = searched.search.hybrid("dog barks", query, Scope(("aaaa",)), k=10, min_gap_s=5.0)
    times = sorted(hit.time_s for hit in apart)
    assert len(times) == 10
    assert min(np.diff(times)) >= 5.0


TEXTS = ("A red kite over the sea", "Two dogs on a boat", "An empty desert")
MEANINGS = unit_vectors(3, seed=50)


@pytest.fixture
def captioned(library: Library) -> Library:
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 30, seed=number, lines=((2.0, 4.0, "Look, a kite!"),)))
    return library


def describe(
    library: Library, model: str, *video_ids: str, texts=TEXTS, meanings=MEANINGS, complete: bool = True
) -> None:
    rows = [caption(n, text, meanings[n]) for n, text in enumerate(texts)]
    add_stage(library, "captions", model, dict.fromkeys(video_ids, rows), complete)


def test_segments_carry_the_captions_of_the_newest_model(captioned):
    segments = [SegmentRow("", n, 10.0 * n, 10.0 * n + 10.0, "shot") for n in range(3)]
    captioned.writer.add_segments({"aaaa": segments})
    assert [segment.caption for segment in captioned.segments("aaaa")] == [None, None, None]
    describe(captioned, "small", "aaaa", "bbbb")
    describe(captioned, "large", "aaaa", texts=("A kite", "Dogs"))
    describe(captioned, "broken", "aaaa", "cccc", texts=("never", "seen", "at all"), complete=False)
    assert captioned.segments("aaaa")[0] == SegmentRow("aaaa", 0, 0.0, 10.0, "shot", "A kite", 0.5, "large")
    assert texts(captioned.captions("aaaa", "small")) == list(TEXTS)
    assert captioned.captions("aaaa")[1] == CaptionRow("aaaa", 1, 10.0, 20.0, "Dogs", 0.5, "large")
    assert captioned.captions("aaaa", "broken") == captioned.captions("cccc") == []
    assert captioned.additions.counts("captions") == {"aaaa": 2, "bbbb": 3}


def test_captions_by_words_and_by_meaning(captioned):
    describe(captioned, "m", "aaaa")
    describe(captioned, "m", "bbbb", meanings=[None, None, MEANINGS[2]])
    describe(captioned, "m", "cccc", complete=False)
    search = captioned.search.captions
    assert {(hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.found_in) for hit in search("red kite")} == {
        ("aaaa", 0.0, 10.0, None, "captions"),
        ("bbbb", 0.0, 10.0, None, "captions"),
    }
    assert len(search("kite", k=1)) == 1
    assert search('"boat dogs"') == search("desert", scope=Scope(None, 0.0, 20.0)) == []
    assert texts(search("desert", scope=Scope(("bbbb",)))) == ["An empty desert"]
    assert len(search("desert", scope=Scope(None, 19.0, 21.0))) == 2
    for vector in (None, MEANINGS[0].astype(np.float32)):
        starts = [
            {hit.time_s for hit in search("kite dogs desert", vector, Scope(("aaaa",)), min_gap_s=gap_s)}
            for gap_s in (0.0, 10.0, 15.0, 21.0)
        ]
        assert starts[0] == starts[1] == {0.0, 10.0, 20.0} > starts[2] > starts[3], "as far apart as wanted"
        assert len(starts[3]) == 1
    hits = search("zebra", MEANINGS[2].astype(np.float32), k=2)
    assert [(hit.video_id, hit.time_s) for hit in hits] == [("aaaa", 20.0), ("bbbb", 20.0)]
    both = search("dogs", MEANINGS[1].astype(np.float32), Scope(("aaaa",)))
    assert (both[0].text, both[0].score) == ("Two dogs on a boat", pytest.approx(2 / 61))
    best = captioned.search.hybrid("kite", made("aaaa", 30, seed=0).vectors[3].astype(np.float32), k=5)[0]
    assert (best.video_id, best.frame_no, best.end_s, best.found_in) == ("aaaa", 3, 10.0, "several")
    assert best.text == "Look, a kite!" and best.score > 2 / 61, "three searches found it"


@pytest.fixture
def detected(library: Library) -> Library:
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 20, seed=number))
    dogs = [detection(3, "Dog", 0.5, 1), detection(4, "dog", 0.75, 1), detection(4, "cat", 0.25)]
    add_stage(library, "detections", "closed", {"aaaa": dogs, "bbbb": [detection(9, "dog", 0.875)]})
    add_stage(library, "detections", "open", {"aaaa": [detection(4, "dog", 0.625), detection(12, "  Red  kite", 0.5)]})
    add_stage(library, "detections", "closed", {"cccc": [detection(1, "dog", 1.0)]}, complete=False)
    return library


def test_detections_of_a_video_by_all_models(detected):
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
    assert detected.detection_labels("aaaa") == ["dog", "cat", "red kite"]
    frames = {label: numbers.tolist() for label, numbers in detected.detected_frames("aaaa").items()}
    assert list(frames.items()) == [("dog", [3, 4]), ("cat", [4]), ("red kite", [12])]
    unfinished = detected.detections("cccc"), detected.detected_frames("cccc"), detected.detection_labels("cccc")
    assert unfinished == ([], {}, [])


def test_frames_with_a_label_best_first(detected):
    best, second, third = ("bbbb", 9, 0.875), ("aaaa", 4, 0.75), ("aaaa", 3, 0.5)
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"label": "DOG"}, [best, second, third]),
        ({"label": "dog", "k": 1}, [best]),
        ({"label": "dog", "min_score": 0.8}, [best]),
        ({"label": "dog", "scope": Scope(("aaaa",), end_s=4.0)}, [third]),
        ({"label": "dog", "min_gap_s": 2.0}, [best, second]),
        ({"label": "zebra"}, []),
    ]
    for asked, expected in cases:
        hits = detected.search.detections(**asked)
        assert [(hit.video_id, hit.frame_no, hit.score) for hit in hits] == expected, asked
    hit = detected.search.detections("dog")[0]
    assert (hit.time_s, hit.end_s, hit.text, hit.found_in) == (9.0, 10.0, "dog", "detections")
    rows = [detection(n % 20, ("dog", "cat", "cow")[n % 3], n / 512) for n in range(400)]
    detected.additions.discard_leftovers("detections", "closed")
    add_stage(detected, "detections", "closed", {"cccc": rows})
    labels = ("dog", "cat", "cow", "red kite")
    before = [detected.search.detections(label, k=7) for label in labels]
    refresh(detected.tables, Thresholds(scalar_rows=100, fragments=1))
    assert [detected.search.detections(label, k=7) for label in labels] == before, "with an index"
    assert before[2][0].score == 398 / 512
    assert len(detected.detections("cccc", label="cow")) == 133


# Vectors that are no numbers any more are an error where they would be searched, and nowhere else.

FRAMES = 6
ANY = made("any", 1, seed=9).vectors[0].astype(np.float32)


@pytest.fixture
def two_films(library: Library) -> Library:
    for seed, video_id in enumerate(("aaaa", "bbbb")):
        video = made(video_id, FRAMES, seed, lines=((0.0, 2.0, "a dog in the snow"),))
        write(library, video)
        add_stage(
            library, "captions", "m", {video_id: [caption(0, "a dog", video.vectors[0]), caption(1, "no vector")]}
        )
    add_sentences(library, ConceptModel())
    return library


def damage(library: Library, table: str, number: float) -> Library:
    """Put a number into the last vector of the first video, in the files; opened anew."""
    rows = library.tables.rows(table).sort_by("video_id")
    at = max(n for n, row in enumerate(rows.to_pylist()) if row["video_id"] == "aaaa" and row["vector"] is not None)
    vectors = rows["vector"].to_pylist()
    vectors[at] = [np.float16(number), *map(np.float16, vectors[at][1:])]
    field = rows.schema.field("vector")
    rows = rows.set_column(rows.schema.get_field_index("vector"), field, pa.array(vectors, field.type))
    lance.write_dataset(rows, table_place(library.uri, table), mode="overwrite", data_storage_version=FILE_FORMAT)
    return Library.open(library.uri)


@pytest.mark.slow
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
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
    damaged.writer.discard("aaaa")
    assert len(damaged.search.frames(ANY, k=20)) == FRAMES


@pytest.mark.slow
def test_chapters_by_titles_and_summaries_of_the_newest_model(library):
    def chapters(text, **rest):
        return [(hit.video_id, hit.time_s) for hit in Library.open(library.uri).search.chapters(text, **rest)]

    for number, video_id in enumerate(("aa", "bb")):
        write(library, made(video_id, 8, number))
    assert chapters("harbour") == [], "no table yet"
    rows = [
        scene("aa", "chapter", 0, 0.0, 4.0, title="The harbour", text="A boat leaves."),
        scene("aa", "chapter", 1, 4.0, 8.0, title="Supper", text="Onions fry in a pan."),
        scene("aa", "scene", 0, 0.0, 4.0, title="The harbour", text="A boat."),
    ]
    summarised(library, "aa", rows)
    summarised(library, "bb", [scene("bb", "chapter", 0, 0.0, 8.0, title="", text="A harbour at night.")])
    (hit,) = library.search.chapters("supper")
    assert (hit.text, hit.end_s, hit.found_in) == ("Supper\nOnions fry in a pan.", 8.0, "chapters")
    assert hit.score == hit.bm25 and hit.bm25 > 0
    assert set(chapters("harbour")) == {("aa", 0.0), ("bb", 0.0)}
    assert chapters("harbour", scope=Scope(("bb",))) == [("bb", 0.0)]
    assert chapters("boat supper", scope=Scope(None, 5.0)) == [("aa", 4.0)]
    assert len(chapters("harbour", k=1)) == 1
    for step in (
        lambda tables: None,
        refresh,
        lambda tables: optimize(tables, "chapters", AFTER_RUN),
        lambda tables: forget_deleted(tables, "chapters"),
    ):
        step(library.tables)
        assert chapters("supper pan") == chapters("onions") == [("aa", 4.0)], "both columns, after maintenance too"
    summarised(library, "aa", [scene("aa", "chapter", 0, 0.0, 8.0, "n", title="Lighthouse", text="A tower.")], "n")
    assert (chapters("onions"), chapters("lighthouse tower")) == ([], [("aa", 0.0)])


@pytest.mark.slow
def test_an_index_finds_the_same(library):
    videos = [made(f"{n:04d}", 60, seed=n) for n in range(30)]
    write_all(library, videos)
    refresh(library.tables, Thresholds(scalar_rows=100, vector_rows=100, stale_rows=10))
    some = Scope(tuple(video.video_id for video in videos[:25]), 10.0, 50.0)
    for query in QUERIES:
        assert found(library.search.frames(query, k=10)) == numpy_search(videos, query, 10)
        expected = numpy_search(videos[:25], query, 10, 3.0, 10.0, 50.0)
        assert found(library.search.frames(query, some, k=10, min_gap_s=3.0)) == expected


@pytest.mark.slow
def test_a_scope_of_many_videos(library):
    videos = [made(f"{n:04d}", 3, seed=n) for n in range(620)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.complete([video.video_row() for video in videos[:610]])
    ids = tuple(video.video_id for video in videos)
    reader, query = Library.open(library.uri), QUERIES[0]
    assert found(reader.search.frames(query, k=10)) == numpy_search(videos[:610], query, 10)
    assert found(reader.search.frames(query, Scope(ids[:600]), k=10)) == numpy_search(videos[:600], query, 10)
    with pytest.raises(UnknownVideo, match="0610"):
        reader.search.frames(query, Scope(ids[:611]))
    library.writer.complete([video.video_row() for video in videos[610:]])
    assert found(reader.search.frames(query, k=10)) == numpy_search(videos, query, 10)


def test_k_is_reached_however_many_hits_crowd(library):
    crowd = np.tile(unit_vectors(1, seed=5), (400, 1))
    video = made("aaaa", 500, seed=7)
    video.vectors[:] = np.concatenate([crowd, unit_vectors(100, seed=6)])
    write(library, video)
    query = crowd[0].astype(np.float32)
    assert found(library.search.frames(query, k=8, min_gap_s=100.0)) == numpy_search([video], query, 8, 100.0)
    assert len(library.search.frames(query, k=499, min_gap_s=1.0)) == 499
    expected = {(10, 1 << 20): 600, (10, 10**9): 600, (10, 1 << 18): 300, (10, 0): 100, (10, 1000): 100}
    expected |= {(100, 1 << 18): 500, (100, 1 << 20): 1000}  # never fewer than are compared again
    assert {each: candidates(*each) for each in expected} == expected


@pytest.mark.parametrize("dim", [37, 1152])
def test_in_memory_of_equal_frames_the_earliest_is_found(dim):
    numbers = np.random.default_rng(5)
    frame = numbers.standard_normal(dim)
    vectors = np.tile(frame / np.linalg.norm(frame), (30, 1)).astype(np.float16)
    in_memory = InMemory.of(FrameVectors(np.arange(30, dtype=np.int32), np.arange(30.0), vectors))
    for query in numbers.standard_normal((20, dim)).astype(np.float32):
        assert len(set(in_memory.cosines(query).tolist())) == 1
        assert [near.at for near in in_memory.search(query, k=3, min_gap_s=1)] == [0, 1, 2]
    scores = np.tile(np.array([0.5, 0.25], np.float32), 20)
    scores[31] = 0.75
    expected = [31, *range(0, 40, 2), *(each for each in range(1, 40, 2) if each != 31)]
    for k, min_gap_s in product((1, 2, 3, 7, 50), (0.0, 1.0)):
        assert top_positions(scores, np.arange(40.0), k, min_gap_s).tolist() == expected[:k], (k, min_gap_s)


def test_only_the_newest_captions_and_speech_are_found_however_many_older_there_are(captioned):
    for number in range(6):
        describe(captioned, f"old {number}", "aaaa", texts=("a zebra", "a zebra", "a zebra"))
    newest = "one zebra, far away, behind a very long fence"
    describe(captioned, "new", "aaaa", texts=("nothing", "nothing", newest))
    assert texts(captioned.search.captions("zebra", k=1)) == [newest]
    for model in ("tiny", "large"):
        add_stage(captioned, "speech", model, {"aaaa": [spoken(4, f"{model} heard a kite")]})
    add_stage(captioned, "speech", "broken", {"aaaa": [spoken(5, "half a kite")]}, complete=False)
    assert [(line.text, line.source, line.model) for line in captioned.speech("aaaa")] == [
        ("Look, a kite!", "sidecar", None),
        ("large heard a kite", "model", "large"),
    ]
    hits = captioned.search.lines("speech", "kite", Scope(("aaaa",)))
    assert sorted(map(str, texts(hits))) == ["Look, a kite!", "large heard a kite"]


def test_indexes_of_captions_change_no_result(captioned):
    describe(captioned, "wordless", "aaaa", "bbbb", texts=["kite"] * 60, meanings=[None] * 60)
    refresh(captioned.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_lines=0))  # of none with a vector
    meanings = unit_vectors(60, seed=51)
    describe(captioned, "m", "aaaa", "bbbb", texts=[f"kite {n}" for n in range(60)], meanings=meanings)
    before = captioned.search.captions("7 kite", meanings[7].astype(np.float32), k=3)
    for _ in range(2):
        refresh(captioned.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_rows=0, stale_lines=0, fragments=1))
    after = captioned.search.captions("7 kite", meanings[7].astype(np.float32), k=3)
    assert [replace(hit, cosine=None) for hit in after] == [replace(hit, cosine=None) for hit in before]
    assert texts(before[:2]) == ["kite 7", "kite 7"]


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
