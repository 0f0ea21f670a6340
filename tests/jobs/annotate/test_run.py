"""`kinodex add` from end to end with tiny models of the real kinds: rows, search, what is left out, what fails."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.embedding.space import load_space
from index.errors import LibraryBusy
from index.library import Library
from index.rows import Scope, SourceRow
from jobs.annotate.captions import Captions
from jobs.annotate.detections import Detections
from jobs.annotate.run import add
from jobs.annotate.speech import Speech
from tests.support import stage_models as stage_kit
from tests.support.chat_server import Behaviour, ChatServer, cut_off, failing, in_turn
from tests.support.command import Kinodex
from tests.support.model_hub import NOBODY_THERE, hub_at
from tests.support.stage_models import beeps, library_of, tiny_film
from tests.support.tiny_models import TINY, write_model


@pytest.fixture
def films(tmp_path: Path) -> list[Path]:
    """Two films with sound and one without."""
    folder = tmp_path / "films"
    folder.mkdir()
    sounds = (beeps(6.0, (3.0,)), None, beeps(4.0))
    return [tiny_film(folder / f"film-{n}.mp4", 6, n, sound) for n, sound in enumerate(sounds)]


@pytest.fixture
def library(films: list[Path], tmp_path: Path) -> Library:
    return library_of(tmp_path / "library", films)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for make in (stage_kit.llava, stage_kit.rt_detr, stage_kit.owlv2, stage_kit.whisper):
        make(folder / make.__name__)
    write_model(folder / "space", TINY)
    return folder


def told(kinodex: Kinodex, *arguments: object) -> dict:
    ran = kinodex("add", *arguments, "--json")
    assert ran.code == 0, ran.err
    printed: dict = json.loads(ran.out)
    return printed


def test_captions_are_made_once_and_found_by_words_and_by_meaning(kinodex, library, models):
    model = models / "llava"
    made = told(kinodex, "captions", library.uri, "--model", model, "--frames-a-segment", 2, "--max-new-tokens", 8)
    segments = sum(row.segments for row in library.videos())
    assert (made["added"], made["failed"], made["rows"]) == (3, 0, segments)
    for row in library.videos():
        captions = library.captions(row.video_id, str(model))
        assert [c.segment_no for c in captions] == [s.segment_no for s in library.segments(row.video_id)]
        assert all(c.text and 0 < (c.confidence or 0) < 1 for c in captions)
        assert [s.caption for s in library.segments(row.video_id)] == [c.text for c in captions]

    wanted = library.captions(library.videos()[1].video_id)[1]
    by_words = library.search.captions(wanted.text, k=segments)
    assert (wanted.video_id, wanted.start_s, wanted.text) in [(hit.video_id, hit.time_s, hit.text) for hit in by_words]
    vector = load_space("builtin", towers="text").embed_text([wanted.text])[0]
    fused = library.search.hybrid(wanted.text, vector, Scope((wanted.video_id,)), k=20)
    assert any(hit.text == wanted.text for hit in fused)

    again = kinodex("add", "captions", library.uri, "--model", model, "--frames-a-segment", 2, "--max-new-tokens", 8)
    assert again.code == 0
    assert "nothing to do: every video has captions by" in again.out
    assert library.ingest_log.runs()[0].kind == "add captions"
    assert library.ingest_log.runs()[0].report["rows"] == segments


def test_detections_have_boxes_and_tracks_and_are_found_by_label(kinodex, library, models):
    made = told(kinodex, "detections", library.uri, "--model", models / "rt_detr", "--min-score", 0.5, "--batch", 3)
    video = library.videos()[0]
    rows = library.detections(video.video_id)
    assert made["added"] == 3
    assert made["rows"] == sum(len(library.detections(row.video_id)) for row in library.videos())
    numbers = library.vectors(video.video_id)
    assert {(row.frame_no, row.time_s) for row in rows} <= set(
        zip(numbers.frame_no.tolist(), numbers.time_s.tolist(), strict=True)
    )
    tracks = {(row.track_id, row.label) for row in rows}
    assert len(tracks) == len({track for track, _ in tracks}) < len(rows)
    label = rows[0].label
    hits = library.search.detections(label, 0.5, Scope((video.video_id,)), k=50)
    assert {hit.time_s for hit in hits} == {row.time_s for row in rows if row.label == label}


def test_an_open_vocabulary_is_an_addition_of_its_own(kinodex, library, models):
    common = ("detections", library.uri, "--model", models / "owlv2", "--min-score", 0.02, "--video", "film-1")
    assert told(kinodex, *common, "--labels", "Red  Kite, boat")["added"] == 1
    assert told(kinodex, *common, "--labels", "boat", "--labels", "red kite")["added"] == 0
    assert told(kinodex, *common, "--labels", "cat")["added"] == 1
    video = library.video("film-1")
    rows = library.detections(video.video_id)
    assert {row.label for row in rows} <= {"red kite", "boat", "cat"}
    assert {row.model.partition(" for ")[2] for row in rows} == {"boat, red kite", "cat"}
    assert library.detections(library.video("film-0").video_id) == []
    assert library.search.detections("cat", 0.02)


def test_speech_is_heard_where_there_is_sound(kinodex, library, models):
    made = told(kinodex, "speech", library.uri, "--model", models / "whisper", "--language", "de")
    assert made["added"] == 3
    assert {each["title"]: each["rows"] > 0 for each in made["outcomes"]} == {
        "film-0": True,
        "film-1": False,
        "film-2": True,
    }
    lines = library.transcript(library.video("film-0").video_id)
    assert {(line.source, line.language, line.model) for line in lines} == {("asr", "de", str(models / "whisper"))}
    hits = library.search.transcript(lines[0].text)
    assert (lines[0].video_id, lines[0].start_s) in [(hit.video_id, hit.time_s) for hit in hits]


def test_a_source_that_is_gone_or_another_by_now_is_a_failure_until_it_is_back(kinodex, library, films, models):
    away = films[0].rename(films[0].with_suffix(".away"))
    was = films[2].read_bytes()
    tiny_film(films[2], 2, 9)
    command = ("add", "speech", library.uri, "--model", models / "whisper")
    for attempt in (1, 2):
        ran = kinodex(*command)
        assert ran.code == 3
        assert "film-0.mp4: nothing is there" in ran.out
        assert "film-2.mp4: holds another video by now" in ran.out
        failures = [(row.uri, row.stage, row.error_class, row.attempts) for row in library.ingest_log.failures()]
        gone, other = str(films[0]), str(films[2])
        assert failures == [(name, "speech", "SourceMissing", attempt) for name in (gone, other)]
    away.rename(films[0])
    films[2].write_bytes(was)
    assert told(kinodex, *command[1:])["added"] == 2
    assert library.ingest_log.failures() == []


def test_a_copy_that_ingest_knew_serves_where_the_first_source_is_gone(library, films, models):
    copy = films[0].rename(films[0].with_suffix(".copy"))
    video = library.video("film-0")
    library.ingest_log.add_sources(
        [SourceRow(str(copy), video.video_id, copy.stat().st_size, "stamp", video.ingested_at)]
    )
    report = add(library, Speech(str(models / "whisper")), [video.video_id])
    assert (report.added, report.rows > 0) == (1, True)


def test_another_space_gives_every_frame_a_second_vector(kinodex, library, models):
    name = f"local-dir:{models / 'space'}"
    made = told(kinodex, "vectors", library.uri, "--space", name, "--batch", 4)
    assert (made["added"], made["rows"]) == (3, sum(row.frames for row in library.videos()))
    space = load_space(name)
    video = library.videos()[1]
    vectors = library.vectors(video.video_id, space=name)
    frames = library.frames(video.video_id, vectors.frame_no.tolist())
    pictures = [stage_kit.rgb_of(frame.jpeg) for frame in frames]
    expected = space.embed(np.stack([space.prepare(picture) for picture in pictures]))
    assert np.allclose(vectors.vectors.astype(float), expected.astype(float), atol=2e-3)
    best = library.search.frames(expected[2], Scope((video.video_id,)), k=1, space=name)[0]
    assert best.frame_no == vectors.frame_no[2]
    own = kinodex("add", "vectors", library.uri, "--space", "builtin")
    assert own.code == 4
    assert "own: every frame has its vector" in own.error_line


def test_captions_of_an_endpoint_with_their_price(kinodex, library):
    replies = [{"caption": f"a red kite number {n} over the sea", "confidence": 10 * n} for n in range(10)]
    with ChatServer(in_turn(*replies)) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        made = told(kinodex, *arguments, "--video", "film-1", "--batch", 1, "--input-price", 2.0)
    video = library.video("film-1")
    assert server.problems == []
    assert made["rows"] == video.segments == len(server.seen)
    assert made["usage"]["input_tokens"] > 0
    assert made["usage"]["cost"] == pytest.approx(made["usage"]["input_tokens"] * 2e-6)
    captions = library.captions(video.video_id, "tester")
    assert [(c.text, round(c.confidence or 0, 3)) for c in captions] == [
        (f"a red kite number {n} over the sea", n / 10) for n in range(video.segments)
    ]
    assert {len(seen.frames) for seen in server.seen} <= {1, 2, 3, 4}
    assert server.seen[0].schema == "Description"
    assert "from 0.0 s to" in server.seen[0].text
    assert library.search.captions("kite")[0].text in {c.text for c in captions}


def test_a_segment_without_a_usable_reply_is_told_and_the_rest_is_there(kinodex, library):
    def reply(request: dict) -> dict | Behaviour:
        """Nothing for the first segment: cut off at first, then empty."""
        if "from 0.0 s to" not in json.dumps(request):
            return {"caption": "a boat", "confidence": 50}
        return {"caption": " ", "confidence": 1} if "could not" in json.dumps(request) else cut_off("{")

    with ChatServer(reply) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--video", "film-1", "--batch", 1)
    video = library.video("film-1")
    assert ran.code == 0
    assert f"1 of {video.segments} segments got no caption" in ran.out
    assert [c.segment_no for c in library.captions(video.video_id)] == list(range(1, video.segments))
    assert [(row.stage, row.error_class) for row in library.ingest_log.failures()] == [("captions", "Incomplete")]


BOAT = {"caption": "a boat", "confidence": 50}


def test_a_refused_request_costs_its_segment_alone(kinodex, library):
    bad = failing(400, "cannot read that image")
    with ChatServer(lambda body: bad if "from 0.0 s to" in json.dumps(body) else BOAT) as server:
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--video", "film-1")
    video = library.video("film-1")
    assert ran.code == 0
    assert f"1 of {video.segments} segments got no caption that could be used; requests refused: 1" in ran.out
    assert "cannot read that image" in ran.out
    assert len(library.captions(video.video_id)) == video.segments - 1


def test_a_video_of_which_all_is_refused_fails_alone_and_is_tried_again(kinodex, library):
    first, *others = library.videos()
    shown = [
        base64.b64encode(frame.jpeg).decode()
        for frame in library.frames(first.video_id, library.vectors(first.video_id).frame_no.tolist())
    ]
    bad = failing(400, "no such pictures")
    with ChatServer(lambda _: BOAT) as server:
        server.reply = lambda body: bad if any(jpeg in json.dumps(body) for jpeg in shown) else BOAT
        arguments = ("captions", library.uri, "--model", "tester", "--base-url", server.base_url)
        ran = kinodex("add", *arguments)
        assert ran.code == 3
        assert "no such pictures" in ran.out
        assert [(row.uri, row.error_class) for row in library.ingest_log.failures()] == [(first.uri, "ModelRejected")]
        assert library.additions.pending("captions", "tester") == [first]
        assert all(len(library.captions(row.video_id)) == row.segments for row in others)
        server.reply = lambda _: BOAT
        assert told(kinodex, *arguments)["added"] == 1
    assert (library.ingest_log.failures(), library.additions.pending("captions", "tester")) == ([], [])


def test_a_wrong_key_or_model_ends_the_run(kinodex, library):
    with ChatServer(lambda _: BOAT, key="right") as server:
        arguments = ("captions", library.uri, "--base-url", server.base_url)
        ran = kinodex("add", *arguments, "--model", "tester")
        assert (ran.code, "check the key" in ran.error_line) == (5, True)
        server.key = None
        ran = kinodex("add", *arguments, "--model", "other")
        assert (ran.code, "has no model 'other'" in ran.error_line) == (5, True)
    assert library.ingest_log.failures() == []


def test_an_endpoint_that_is_not_there_ends_the_run(kinodex, library):
    ran = kinodex("add", "captions", library.uri, "--model", "m", "--base-url", "ftp://nobody")
    assert ran.code == 2
    assert "must look like http://HOST:PORT/v1" in ran.error_line
    ran = kinodex("add", "captions", library.uri, "--model", "m", "--base-url", "https://api.example.com/v1")
    assert ran.code == 5
    assert "no key for api.example.com" in ran.error_line
    assert library.ingest_log.failures() == []


def test_models_that_cannot_be_used_end_the_run_in_one_line(kinodex, library, models):
    ran = kinodex("add", "captions", library.uri, "--model", models / "rt_detr")
    assert ran.code == 2
    assert "it is no model for AutoModelForImageTextToText" in ran.error_line
    ran = kinodex("add", "detections", library.uri, "--model", f"{models}/nothing")
    assert ran.code == 2
    assert "where there is no folder" in ran.error_line
    assert library.additions.pending("captions", str(models / "rt_detr")) == library.videos()


def test_a_model_of_the_hub_where_there_is_no_network(kinodex, library):
    with hub_at(NOBODY_THERE):
        ran = kinodex("add", "detections", library.uri, "--model", "nobody/nothing")
    assert ran.code == 2
    assert "cannot get the model nobody/nothing" in ran.error_line


def test_a_picture_that_cannot_be_read_fails_its_video_alone(library, models, films, tmp_path):
    broken = library_of(tmp_path / "broken", films[1:2])
    video = broken.videos()[0]
    frame = stage_kit.stored_row(broken, video.video_id)
    other = replace(video, video_id="f" * 32, title="broken", uri="/films/broken.mp4", frames=1, segments=0)
    broken.writer.add_frames({other.video_id: [replace(frame, jpeg=b"no picture")]})
    assert broken.writer.complete([other]) == ()
    report = add(broken, Detections(str(models / "rt_detr")))
    assert (report.added, report.failed) == (1, 1)
    failure = broken.ingest_log.failures()[0]
    assert (failure.uri, failure.stage, failure.error_class) == (other.uri, "detections", "PictureError")


def test_one_run_a_stage_at_a_time_and_videos_that_come_meanwhile(library, films, tmp_path, models):
    stage = Detections(str(models / "rt_detr"))
    with library.lease("add detections", "another"), pytest.raises(LibraryBusy, match="add detections is at work"):
        add(library, stage)
    new = tiny_film(tmp_path / "new.mp4", 3, 7)

    def ingest_one_more(done: int, total: int, last: object) -> None:
        if done == 1:
            library_of(Path(library.uri), [new])

    with library.lease("ingest", "an ingest that goes on"):
        assert add(library, stage, watch=ingest_one_more).added == 3
    assert [row.title for row in library.additions.pending("detections", stage.model)] == ["new"]
    assert add(library, stage).added == 1


def test_stages_can_be_sent_and_name_what_they_depend_on():
    import pickle

    stages = (Captions("a"), Detections("b", ("x", "y")), Speech("c"))
    for stage in stages:
        assert pickle.loads(pickle.dumps(stage)) == stage
        assert "device" not in stage.settings
        json.dumps(dict(stage.settings))
    assert Captions("a", frames_a_segment=2).settings != Captions("a").settings


def test_the_folder_of_a_model_is_one_model_from_everywhere(models, monkeypatch):
    from jobs.cli.add import local_name

    monkeypatch.chdir(models)
    assert local_name("llava") == str(models / "llava") == local_name(os.fspath(models / "llava"))
    assert local_name("google/owlv2-base-patch16") == "google/owlv2-base-patch16"
