"""`kinodex import` from end to end: libraries of text alone, text for videos that are there, what is done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.spaces.load import load_text_tower
from kinodex.index.store.indexes import refresh
from kinodex.index.sweep import audit, sweep
from kinodex.jobs.text_import.run import ImportResult, import_text
from kinodex.jobs.text_import.video_text import ReadResult, TextLine, VideoText
from kinodex.pipeline.sample import FrameRow
from tests.support.command import bad, json_of
from tests.support.libraries.agent_library import make_library
from tests.support.libraries.random_library import made
from tests.support.libraries.text_files import written
from tests.support.libraries.text_library import text_library, text_video_id
from tests.world.drawn_space import DRAWN

CAPTIONS = {"q-1": ["a red boat on the sea", "a blue car in snow"], "q-2": ["a green tree"]}


def texts(videos: Mapping[str, Sequence[str]]) -> list[ReadResult]:
    return [
        VideoText(name, tuple(TextLine(float(at), at + 1.0, each) for at, each in enumerate(said)))
        for name, said in videos.items()
    ]


def said(library: Library, name: str) -> list[tuple[float, float, str]]:
    return [(row.start_s, row.end_s, row.text) for row in library.speech(library.video(name).video_id)]


def bring(library: Library, videos: Mapping[str, Sequence[str]], model: str = "someone", **rest) -> ImportResult:
    return import_text(library, "speech", model, "here", texts(videos), {}, **rest)


@pytest.mark.slow
def test_a_library_of_captions_alone(kinodex, tmp_path):
    source, uri = written(tmp_path / "lavila.json", CAPTIONS), tmp_path / "library"
    common = ("import", "captions", source, uri, "--model", "lavila")
    first = json_of(kinodex, *common, "--space", DRAWN)
    assert (first["added"], first["rows"], first["new_videos"], first["left_out"]) == (2, 3, 2, 0)
    again = json_of(kinodex, *common)
    assert (again["added"], again["new_videos"], again["left_out"]) == (0, 0, 2)

    library = Library.open(str(uri))
    row = library.video("q-1")
    assert (row.video_id, row.uri, row.title) == (text_video_id("q-1"), "imported:q-1", "q-1")
    assert (row.frames, row.duration_s, row.codec, row.width_px) == (0, 2.0, "text", 0)
    assert [(each.start_s, each.end_s, each.caption) for each in library.segments(row.video_id)] == [
        (0.0, 1.0, "a red boat on the sea"),
        (1.0, 2.0, "a blue car in snow"),
    ]
    tower = load_text_tower(DRAWN)
    kept = library.caption_vectors(row.video_id)
    assert kept.frame_no.tolist() == [0, 1]
    assert kept.time_s.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(kept.vectors, tower.embed_text(CAPTIONS["q-1"]), atol=1e-3)
    assert audit(library).problems == ()
    facts = json_of(kinodex, "info", uri)
    assert facts["added"] == [{"stage": "captions", "model": "lavila", "videos": 2, "rows": 3}]
    assert "captions by lavila: 3 in 2 videos" in kinodex("info", uri).out
    assert "none, only text" in kinodex("info", uri).out
    hit = library.search.hybrid("blue car", tower.embed_text(["blue car"])[0])[0]
    assert (hit.text, hit.time_s, hit.found_in) == ("a blue car in snow", 1.0, "captions")
    at = ("--video", "q-1", "--at", 0)
    bad(kinodex, "export", "frames", uri, tmp_path / "out", *at, code=2, says="was imported as text and has no frames")


@pytest.mark.slow
def test_new_videos_are_added_and_old_ones_replaced_when_asked(kinodex, tmp_path):
    uri = tmp_path / "library"
    common = ("import", "captions", tmp_path / "lavila.json", uri, "--model", "lavila", "--space", DRAWN)
    written(tmp_path / "lavila.json", CAPTIONS)
    json_of(kinodex, *common)
    written(tmp_path / "lavila.json", {"q-1": ["one", "two", "three"], "q-3": ["new"]})
    assert json_of(kinodex, *common)["new_videos"] == 1
    library = Library.open(str(uri))
    assert [row.text for row in library.captions(library.video("q-1").video_id)] == CAPTIONS["q-1"]
    replaced = json_of(kinodex, *common, "--replace")
    assert (replaced["added"], replaced["rows"], replaced["left_out"]) == (2, 4, 0)
    assert [row.text for row in library.captions(library.video("q-1").video_id)] == ["one", "two", "three"]
    assert library.video("q-1").duration_s == 3.0
    assert audit(library).problems == ()


def test_a_transcript_alone_has_windows_for_segments(kinodex, tmp_path):
    source = written(tmp_path / "film.vtt", "WEBVTT\n\n00:01.000 --> 00:04.000\nHello\n\n00:20.000 --> 00:25.000\nBye")
    uri = tmp_path / "library"
    made_of = json_of(kinodex, "import", "speech", source, uri, "--space", DRAWN, "--duration", 30)
    assert (made_of["added"], made_of["rows"], made_of["new_videos"]) == (1, 2, 1)
    library = Library.open(str(uri))
    row = library.video("film")
    assert row.duration_s == 30.0
    assert [(each.start_s, each.end_s) for each in library.segments(row.video_id)] == [(0, 10), (10, 20), (20, 30)]
    (first, second) = library.speech(row.video_id)
    assert (first.text, first.source, first.model, second.start_s) == ("Hello", "imported", "imported", 20.0)
    assert library.search.lines("speech", "bye")[0].time_s == 20.0
    assert library.caption_vectors(row.video_id).vectors.shape == (0, library.fingerprint.dim)
    assert audit(library).problems == ()


@pytest.mark.slow
def test_an_import_that_is_interrupted_goes_on_where_it_was(tmp_path):
    videos = {f"video {number}": [f"line {number}", "and on"] for number in range(10)}
    whole, broken = (make_library(tmp_path / name, {"other": ["sea"]}) for name in ("whole", "broken"))
    bring(whole, videos)

    def stop(done: int, total: int, last: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring(broken, videos, watch=stop)
    assert 0 < len(broken.additions.pending("speech", "someone")) < 10
    rest = bring(broken, videos)
    assert (rest.made, rest.left_out + rest.report.added) == (0, 10)
    assert audit(broken).problems == ()
    for row in whole.videos():
        assert said(broken, row.title) == said(whole, row.title)
        assert broken.segments(row.video_id) == whole.segments(row.video_id)


@pytest.mark.slow
def test_videos_without_frames_stand_beside_others(kinodex, tmp_path):
    tower = load_text_tower(DRAWN)
    library = Library.create(str(tmp_path / "mixed"), {"fps": 1.0}, tower.fingerprint)
    film = made("film", 3, 0)
    vectors = tower.embed_text(["a red boat", "a green tree", "a blue car"]).astype(np.float16)
    rows = [FrameRow(n, float(n), 8, 8, b"jpeg", vector) for n, vector in enumerate(vectors)]
    library.writer.add_frames({"film": rows})
    assert library.writer.complete([film.video_row("film")]) == ()
    import_text(library, "captions", "m", "here", texts(CAPTIONS), {})
    refresh(library.tables)

    text_id = text_video_id("q-1")
    assert len(library.vectors(text_id).frame_no) == 0
    assert library.in_memory(text_id).search(vectors[0].astype(np.float32), 3) == []
    assert library.search.frames(vectors[0], Scope((text_id,))) == []
    assert {hit.video_id for hit in library.search.hybrid("a red boat", vectors[0], k=20)} >= {"film", text_id}
    assert audit(library).problems == ()
    assert sweep(library) == 0
    ran = kinodex("add", "detections", library.uri, "--model", tmp_path, "--video", "q-1")
    assert (ran.code, "has no frames; leave it out" in ran.error_line) == (2, True)
    alone = text_library(tmp_path / "alone", {"a": [(0.0, 1.0, "a red boat")]})
    ran = kinodex("add", "vectors", alone.uri, "--space", DRAWN)
    assert (ran.code, ran.err.strip()) == (0, "1 video that was imported as text is left out: it has no frames")
    assert alone.vectors(text_video_id("a"), DRAWN).vectors.shape == (0, tower.dim)


def test_text_goes_to_the_videos_that_are_there(tmp_path):
    library = make_library(tmp_path, {"one": ["boat"] * 3, "two": ["car"] * 5})
    by_id = library.video("two").video_id
    done = bring(library, {"one": ["a", "b", "c", "d", "e"], by_id: ["z"], "three": ["new"]})
    assert (done.made, done.left_out, done.report.rows) == (1, 0, 5)
    assert said(library, "one") == [(0.0, 1.0, "a"), (1.0, 2.0, "b"), (2.0, 3.0, "c")]
    assert said(library, "two") == [(0.0, 1.0, "z")]
    (late,) = [each.problem for each in done.report.outcomes if each.problem]
    assert late == "2 of 5 lines lie outside it, 0 s to 3 s"
    assert library.video("one").frames == 3
    assert audit(library).problems == ()
