"""Captions: read with their segments, searched by words and by meaning, fused with frames and transcript."""

from __future__ import annotations

import numpy as np
import pytest

from index.errors import QueryError, UnknownVideo
from index.library import Library
from index.rows import CaptionRow, Hit, Scope, SegmentRow
from index.store.indexes import Thresholds, refresh
from tests.support.random_library import DIM, SETTINGS, caption, fingerprint, made, spoken, unit_vectors, write

TEXTS = ("A red kite over the sea", "Two dogs on a boat", "An empty desert")
MEANINGS = unit_vectors(3, seed=50)


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 30, seed=number, lines=((2.0, 4.0, "Look, a kite!"),)))
    return library


def add(library: Library, model: str, *video_ids: str, texts=TEXTS, meanings=MEANINGS, complete: bool = True) -> None:
    rows = [caption(n, text, meanings[n]) for n, text in enumerate(texts)]
    library.additions.add_captions(dict.fromkeys(video_ids, rows), model)
    if complete:
        assert library.additions.complete("captions", model, dict.fromkeys(video_ids, len(rows)), {}) == ()


def texts(hits: list[Hit]) -> list[str | None]:
    return [hit.text for hit in hits]


def test_segments_carry_the_captions_of_the_newest_model(library):
    segments = [SegmentRow("", n, 10.0 * n, 10.0 * n + 10.0, "shot") for n in range(3)]
    library.writer.add_segments({"aaaa": segments})
    assert [segment.caption for segment in library.segments("aaaa")] == [None, None, None]
    add(library, "small", "aaaa")
    add(library, "large", "aaaa", texts=("A kite", "Dogs", "Sand"))
    add(library, "broken", "aaaa", texts=("never", "seen", "at all"), complete=False)
    first = library.segments("aaaa")[0]
    assert first == SegmentRow("aaaa", 0, 0.0, 10.0, "shot", "A kite", 0.5, "large")
    assert [row.text for row in library.captions("aaaa", "small")] == list(TEXTS)
    assert library.captions("aaaa")[2] == CaptionRow("aaaa", 2, 20.0, 30.0, "Sand", 0.5, "large")
    assert library.captions("aaaa", "broken") == library.captions("bbbb") == []


def test_captions_are_counted_as_they_are_read(library):
    add(library, "small", "aaaa", "bbbb")
    add(library, "large", "aaaa", texts=("A kite", "Dogs"), meanings=MEANINGS[:2])
    add(library, "broken", "bbbb", "cccc", texts=("never",), meanings=MEANINGS[:1], complete=False)
    counts = library.additions.counts("captions")
    assert counts == {"aaaa": 2, "bbbb": 3}
    assert all(len(library.captions(video_id)) == count for video_id, count in counts.items())


def test_captions_by_words(library):
    add(library, "m", "aaaa", "bbbb")
    add(library, "m", "cccc", complete=False)
    hits = library.search.captions("red kite")
    assert {(hit.video_id, hit.time_s, hit.end_s, hit.frame_no, hit.source) for hit in hits} == {
        ("aaaa", 0.0, 10.0, None, "caption"),
        ("bbbb", 0.0, 10.0, None, "caption"),
    }
    assert len(library.search.captions("kite", k=1)) == 1
    assert texts(library.search.captions('"boat dogs"')) == []
    assert texts(library.search.captions("desert", scope=Scope(("bbbb",)))) == ["An empty desert"]
    assert library.search.captions("desert", scope=Scope(None, 0.0, 20.0)) == []
    assert len(library.search.captions("desert", scope=Scope(None, 19.0, 21.0))) == 2


def test_only_the_newest_captions_are_found_however_many_older_there_are(library):
    for number in range(6):
        add(library, f"old {number}", "aaaa", texts=("a zebra", "a zebra", "a zebra"))
    add(library, "new", "aaaa", texts=("nothing", "nothing", "one zebra, far away, behind a very long fence"))
    assert texts(library.search.captions("zebra", k=1)) == ["one zebra, far away, behind a very long fence"]


def test_captions_by_meaning(library):
    add(library, "m", "aaaa")
    add(library, "m", "bbbb", meanings=[None, None, MEANINGS[2]])
    hits = library.search.captions("zebra", MEANINGS[2].astype(np.float32), k=2)
    assert [(hit.video_id, hit.time_s) for hit in hits] == [("aaaa", 20.0), ("bbbb", 20.0)]
    both = library.search.captions("dogs", MEANINGS[1].astype(np.float32), Scope(("aaaa",)))
    assert both[0].text == "Two dogs on a boat"
    assert both[0].score == pytest.approx(2 / 61)
    with pytest.raises(QueryError, match=r"shape \(5,\)"):
        library.search.captions("dogs", np.ones(5))


def test_searches_of_captions_that_cannot_be_run(library):
    with pytest.raises(QueryError, match="empty query"):
        library.search.captions(" ")
    with pytest.raises(UnknownVideo, match="nobody"):
        library.search.captions("kite", scope=Scope(("nobody",)))


def test_speech_of_the_newest_model_joins_the_subtitles(library):
    for model in ("tiny", "large"):
        library.additions.add_speech({"aaaa": [spoken(4, f"{model} heard a kite")]}, model)
        library.additions.complete("speech", model, {"aaaa": 1}, {})
    library.additions.add_speech({"aaaa": [spoken(5, "half a kite")]}, "broken")
    lines = library.transcript("aaaa")
    assert [(line.text, line.source, line.model) for line in lines] == [
        ("Look, a kite!", "sidecar", None),
        ("large heard a kite", "asr", "large"),
    ]
    found = texts(library.search.transcript("kite", Scope(("aaaa",))))
    assert sorted(map(str, found)) == ["Look, a kite!", "large heard a kite"]


def test_frames_lines_and_captions_are_fused(library):
    """A moment that all three find comes before one that two find."""
    add(library, "m", "aaaa", "bbbb")
    video = made("aaaa", 30, seed=0)
    best = library.search.hybrid("kite", video.vectors[3].astype(np.float32), k=5)[0]
    assert (best.video_id, best.frame_no, best.end_s, best.source) == ("aaaa", 3, 10.0, "both")
    assert best.text == "Look, a kite!"
    assert best.score > 2 / 61


def hit(video_id: str, time_s: float, end_s: float, source) -> Hit:
    return Hit(video_id, time_s, end_s, None, 1.0, f"{source} {time_s}", source)


def test_indexes_of_captions_change_no_result(library):
    add(library, "wordless", "aaaa", "bbbb", texts=["kite"] * 60, meanings=[None] * 60)
    refresh(library.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_lines=0))  # 120 captions without a vector
    meanings = unit_vectors(60, seed=51)
    add(library, "m", "aaaa", "bbbb", texts=[f"kite {n}" for n in range(60)], meanings=meanings)
    before = library.search.captions("7 kite", meanings[7].astype(np.float32), k=3)
    for _ in range(2):
        refresh(library.tables, Thresholds(scalar_rows=10, vector_rows=100, stale_rows=0, stale_lines=0, fragments=1))
    assert library.search.captions("7 kite", meanings[7].astype(np.float32), k=3) == before
    assert [h.text for h in before[:2]] == ["kite 7", "kite 7"]
    assert meanings.shape == (60, DIM)
