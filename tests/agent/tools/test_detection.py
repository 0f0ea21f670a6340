"""Things found and followed: by the library's detections, else by a real detector, else by the index's vectors."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.errors import InvalidReply, OutOfBudget
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.question import Question
from kinodex.agent.session import Session
from kinodex.agent.tools.detection import Box, detect, track, zoom
from kinodex.agent.tools.labels import Match, match_label
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.detector import detect_with
from kinodex.jobs.open import open_environment
from kinodex.pipeline.errors import ModelMissing, WrongModel
from tests.support.libraries.agent_library import ScriptedModel, embed_words, environment_of, film, make_library
from tests.support.libraries.random_library import detection
from tests.support.models import stage_models as stage_kit


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


def test_a_spent_budget_stops_a_detector(library):
    session = session_of(library, lambda frames, label: [], Budget(frames=2))
    assert run(detect(session, frames(session, 3, 4), "thing")) == ()
    assert run(detect(session, frames(session, 4, 3), "thing")) == ()  # seen before
    with pytest.raises(OutOfBudget, match="frames"):
        run(detect(session, frames(session, 5), "thing"))
    spent = session_of(library, lambda frames, label: [], Budget(seconds=1e-9))
    with pytest.raises(OutOfBudget, match="seconds"):
        run(spent.account.clock.count(track(spent, film_id(spent), "thing", 0, 9)))


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
