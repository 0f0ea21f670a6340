"""Things found and followed: by the library's detections, else by a real detector, else by the index's vectors."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.environment import Environment
from kinodex.agent.errors import InvalidReply, OutOfBudget
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import uniform_frames, uniform_times
from kinodex.agent.tools.detection import WHOLE, Box, Match, detect, match_label, track, zoom
from kinodex.index.rows import DetectionRow
from kinodex.jobs.open import detect_with, open_environment
from kinodex.pipeline.errors import ModelMissing, WrongModel
from tests.support.libraries.agent_library import ScriptedModel, embed_words, environment_of, film, make_library
from tests.support.libraries.random_library import detection
from tests.support.models import stage_models as stage_kit

LEFT_HALF = (0.0, 0.0, 0.5, 1.0)
RIGHT_HALF = (0.5, 0.0, 1.0, 1.0)


def quarters() -> bytes:
    """A picture of four coloured quarters: red, green, blue and white, 40 by 20 px."""
    picture = np.zeros((20, 40, 3), np.uint8)
    picture[:10, :20, 0] = picture[:10, 20:, 1] = picture[10:, :20, 2] = 255
    picture[10:, 20:] = 255
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=95, subsampling=0)
    return file.getvalue()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    films = {"film": film(3, 90, {40: ("red kite desert", 10), 60: ("red kite desert", 5)}), "other": film(4, 20)}
    library = make_library(tmp_path_factory.mktemp("detecting"), films, quarters())
    video_id = library.video("film").video_id
    rows = [detection(n, "Red Boat", 0.5 + n / 100, track_id=n // 10) for n in range(5, 15)]
    library.additions.add_detections({video_id: [*rows, detection(30, "red boat", 0.9)]}, "m")
    library.additions.complete("detections", "m", {video_id: 11}, {})
    return library


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return SimpleNamespace(closed=stage_kit.rt_detr(folder / "closed"), words=stage_kit.owlv2(folder / "words"))


def session_of(library, detector=None, budget=None) -> Session:
    environment = Environment.of(library, library.videos(), lambda texts: embed_words(texts), detector)
    return Session(Question("What?"), environment, ScriptedModel(lambda request: {}), budget or Budget(), print)


def frames(session, *times_s):
    return session.environment.frames(film_id(session), times_s)


def run(look):
    return asyncio.run(look).things


def film_id(session) -> str:
    return str(session.environment.video("film").video_id)


def test_the_librarys_detections_come_first(library):
    session = session_of(library, detector=lambda frames, label: pytest.fail("the library knows"))
    found = run(detect(session, frames(session, 4, 6, 30), "red  BOAT"))
    assert [(each.time_s, each.label, each.source) for each in found] == [
        (6, "red boat", "library"),
        (30, "red boat", "library"),
    ]
    assert found[0].box == pytest.approx((0.125, 0.25, 0.5, 0.75))
    assert found[0].score == pytest.approx(0.56)
    assert run(detect(session, frames(session, 6), "red boat", LEFT_HALF)) == found[:1]
    assert run(detect(session, frames(session, 6), "red boat", RIGHT_HALF)) == ()
    assert session.account.ledger.frames == 0


def test_tracks_of_the_library_go_by_their_numbers_and_last_until_the_next_frame(library):
    session = session_of(library)
    tracks = run(track(session, film_id(session), "red boat", 7, 33))
    assert [(each.start_s, each.end_s, len(each.sightings)) for each in tracks] == [
        (7, 10, 3),
        (10, 15, 5),
        (30, 31, 1),
    ]
    assert tracks[0].score == pytest.approx(0.58)


def test_without_detections_the_index_tells_where_a_thing_stands_out(library):
    session = session_of(library)
    found = run(detect(session, frames(session, 3, 41, 49, 75), "Kite  desert"))
    assert [(each.time_s, each.label, each.box, each.track_id, each.source) for each in found] == [
        (41, "kite desert", None, None, "index"),
        (49, "kite desert", None, None, "index"),
    ]
    assert {1 / 3 < each.score < 1 for each in found} == {True}
    tracks = run(track(session, film_id(session), "kite desert", 0, 1000))
    assert [(each.start_s, each.end_s) for each in tracks] == [(40, 50), (60, 65)]
    assert session.account.ledger.frames == 0


@pytest.mark.slow
def test_a_detector_of_its_own_labels_looks_where_the_library_does_not_tell(library, models):
    session = session_of(library, detect_with(library, str(models.closed), min_score=0.1, device="cpu"))
    found = run(detect(session, frames(session, 3, 41), "Kite"))
    assert {(each.label, each.source) for each in found} == {("kite", "detector")}
    assert [each.time_s for each in found] == sorted(each.time_s for each in found)
    assert session.account.ledger.frames == 2
    (first, *_) = (each for each in found if each.time_s == 3)
    assert any(each.time_s == 41 and each.track_id == first.track_id for each in found)  # the pictures are the same
    tracks = run(track(session, first.video_id, "kite", 50, 60, count=4))
    assert sum(len(each.sightings) for each in tracks) > len(tracks) >= 1
    assert session.account.ledger.frames == 2 + 4


def test_boxes_found_in_a_part_of_a_frame_are_boxes_of_the_whole(library):
    seen = []

    def everywhere(frames, label):
        seen.extend(frames)
        return [DetectionRow(each.video_id, each.frame_no, each.time_s, label, 0.5, WHOLE, 0, "m") for each in frames]

    session = session_of(library, everywhere)
    (found,) = run(detect(session, frames(session, 3), "thing", (0.5, 0.25, 1.0, 0.75)))
    assert found.box == (0.5, 0.25, 1.0, 0.75)
    assert (seen[0].width_px, seen[0].height_px) == (40, 20)
    assert seen[0].jpeg != frames(session, 3)[0].jpeg


def test_a_spent_budget_stops_a_detector(library):
    session = session_of(library, lambda frames, label: [], Budget(frames=2))
    assert run(detect(session, frames(session, 3, 4), "thing")) == ()
    assert run(detect(session, frames(session, 4, 3), "thing")) == ()  # seen before
    with pytest.raises(OutOfBudget, match="frames"):
        run(detect(session, frames(session, 5), "thing"))
    spent = session_of(library, lambda frames, label: [], Budget(seconds=1e-9))
    with pytest.raises(OutOfBudget, match="seconds"):
        run(spent.account.clock.count(track(spent, film_id(spent), "thing", 0, 9)))


def test_zoom_shows_a_part_as_large_as_the_frame(library):
    session = session_of(library)
    (frame,) = frames(session, 3)
    part = zoom(frame, (0.5, 0.5, 1.0, 1.0))
    assert (part.video_id, part.frame_no, part.time_s) == (frame.video_id, frame.frame_no, frame.time_s)
    assert (part.width_px, part.height_px) == (40, 20)
    with Image.open(io.BytesIO(part.jpeg)) as picture:
        assert picture.size == (40, 20)
        assert np.asarray(picture)[4:-4, 4:-4].min() > 240  # the white quarter
    assert zoom(frame, (0.0, 0.0, 0.01, 1.0)).height_px == 40
    assert zoom(frame, (0.5, 0.5, 1.0, 1.0)) == part


def test_impossible_boxes_labels_ranges_and_videos_are_replies_that_are_invalid(library):
    session = session_of(library)
    shown = frames(session, 3)
    boxes: list[Box] = [(0.5, 0, 0.5, 1), (0, 0, 1.1, 1), (0, 0.9, 1, 0.1), (float("nan"), 0, 1, 1)]
    for box in boxes:
        with pytest.raises(InvalidReply, match="box"):
            zoom(shown[0], box)
        with pytest.raises(InvalidReply, match="box"):
            run(detect(session, shown, "kite", box))
    with pytest.raises(InvalidReply, match="label"):
        run(detect(session, session.environment.frames(session.environment.video("other").video_id, [3]), "  "))
    for start_s, end_s in ((5, 5), (9, 5), (200, 300), (float("nan"), 9)):
        with pytest.raises(InvalidReply, match="0 to 90 s"):
            run(track(session, shown[0].video_id, "kite", start_s, end_s))
    for name in (None, "nobody", ""):
        with pytest.raises(InvalidReply, match="the videos are"):
            session.environment.video(name)
    assert session.environment.video(shown[0].video_id[:12]).title == "film"
    assert run(detect(session, (), "kite")) == ()


def test_labels_of_the_library_are_meant_by_other_words_for_them(library):
    for asked in ["Red boats", "the red boat", "a small red boat"]:
        session = session_of(library, detector=lambda frames, label: pytest.fail("the library knows"))
        found = asyncio.run(detect(session, frames(session, 4, 6, 30), asked))
        assert (len(found.things), found.source, found.label) == (2, "library", "red boat"), asked
        assert found.loose == (asked == "a small red boat"), asked
        tracks = asyncio.run(track(session, film_id(session), asked, 7, 33))
        assert (len(tracks.things), tracks.source) == (3, "library"), asked


def test_no_label_is_everything_that_the_library_or_a_detector_knows(library):
    asked = []

    def everything(frames, label):
        asked.append(label)
        return [DetectionRow(each.video_id, each.frame_no, each.time_s, "kite", 0.5, WHOLE, 0, "m") for each in frames]

    session = session_of(library, everything)
    found = asyncio.run(detect(session, frames(session, 4, 6, 30), ""))
    assert ([each.label for each in found.things], found.source, asked) == (["red boat"] * 2, "library", [])
    other = session.environment.frames(session.environment.video("other").video_id, [3, 4])
    found = asyncio.run(detect(session, other, ""))
    assert ([each.label for each in found.things], found.source, asked) == (["kite"] * 2, "detector", [""])


@pytest.mark.slow
def test_ask_takes_a_detector_and_says_what_is_wrong_with_others(tmp_path, models):
    library = stage_kit.library_of(tmp_path / "library", [stage_kit.tiny_film(tmp_path / "film.mp4", 4, seed=1)])
    environment = open_environment(library.uri, (), str(models.closed))
    assert environment.detect is not None
    frame = environment.frames_between(environment.video().video_id, 0, 4, 1)
    assert environment.detect(frame, "red kite") is None
    assert environment.detect(frame, "kite") is not None
    with pytest.raises(ModelMissing):
        open_environment(library.uri, (), str(tmp_path / "nothing"))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text('{"model_type": "nothing"}')
    with pytest.raises(WrongModel):
        open_environment(library.uri, (), str(tmp_path / "foreign"))


# Words for things, matched with the labels that a detector knows; by vectors in a real space, where there is one.


KNOWN = ("person", "car", "bus", "boat", "red boat", "dog", "knife")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("labels"), {"film": film(1, 5)}))


def test_singular_and_plural_are_one(environment: Environment) -> None:
    for asked, label in [
        ("Cars", "car"),
        ("the bus", "bus"),
        ("buses", "bus"),
        ("Red  boats", "red boat"),
        ("knives", "knife"),
    ]:
        assert match_label(environment, asked, KNOWN) == Match(label, loose=False), (asked, label)


def test_kinds_of_a_thing_are_it_loosely(environment: Environment) -> None:
    for asked, label in [
        ("a big black dog", "dog"),
        ("man", "person"),
        ("two women", "person"),
        ("small red boat", "red boat"),
    ]:
        assert match_label(environment, asked, KNOWN) == Match(label, loose=True), (asked, label)


def test_likeness_of_words_makes_synonyms(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        """Two synonyms close to each other, all else by chance."""
        vectors = np.stack([np.random.default_rng(sum(map(ord, text))).normal(size=256) for text in texts])
        for at, text in enumerate(texts):
            if text in ("automobile", "car"):
                vectors[at] = np.random.default_rng(1).normal(size=256) + 0.4 * vectors[at]
        units: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return units

    library = make_library(tmp_path, {"film": film(1, 5)})
    environment = Environment.of(library, library.videos(), embed)
    assert match_label(environment, "automobiles", KNOWN) == Match("car", loose=True)
    assert match_label(environment, "house", KNOWN) is None


# Equally spaced frames: shared out among videos by duration, of videos with pictures only.


def test_videos_get_their_share_of_the_frames_by_duration(tmp_path: Path) -> None:
    library = make_library(tmp_path / "library", {"short": film(1, 30), "long": film(2, 90)})
    environment = environment_of(library)
    times_s = uniform_times(environment, 8)
    counts = {video.title: len(times_s[video.video_id]) for video in environment.videos}
    assert counts == {"short": 2, "long": 6}
    short = library.video("short").video_id
    assert times_s[short] == [10.0, 20.0]
    shown = uniform_frames(environment, times_s)
    assert [frame.time_s for frame in shown if frame.video_id == short] == [10.0, 20.0]
    assert len(shown) == 8
