"""`kinodex add --ray`: the same rows as in one process, with workers that die on the way."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from kinodex.agent.errors import ModelUnreachable
from kinodex.index.library import Library
from kinodex.jobs.add.run import add
from kinodex.jobs.add.screen_text import ScreenText
from kinodex.pipeline.errors import WrongModel
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, rows_held
from tests.support.models.dying_stage import Dying
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.screen_text.film import text_film
from tests.support.servers.ray_node import RayCluster

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1200)]  # against a hang; it waits for no time
VIDEOS = 16


@pytest.fixture(scope="module")
def executor(ray_cluster: RayCluster):
    from kinodex.jobs.workers import ray_executor

    with ray_executor(2, ray_cluster.address) as connected:
        yield connected


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{number:08d}", 3, number) for number in range(1, VIDEOS + 1)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    assert library.writer.complete([video.video_row() for video in videos]) == ()
    return library


def test_lost_workers_leave_no_gap_and_no_double(library, executor, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    stage = Dying(str(marks), always=f"{11:08d}", once=f"{3:08d}")
    report = add(library, stage, executor=executor)
    assert [(each.video_id, each.error_class) for each in report.outcomes if each.is_failed] == [
        (stage.always, "WorkerLost")
    ]
    ids = [row.video_id for row in library.videos()]
    held = rows_held(library.tables, "detections", "dying", ids)
    assert {id_: held[id_] for id_ in ids} == {id_: 0 if id_ == stage.always else int(id_) for id_ in ids}
    assert [row.video_id for row in library.additions.pending("detections", "dying")] == [stage.always]
    assert [failure.error_class for failure in library.ingest_log.failures()] == ["WorkerLost"]
    assert len(list(marks.iterdir())) >= 4  # 2 workers, 1 after the first loss, and those after the lasting one


def test_what_makes_the_whole_run_senseless_ends_it_in_the_workers_own_words(library, executor, tmp_path):
    with pytest.raises(WrongModel, match=r"^this model is for something else$"):
        add(library, Dying(str(tmp_path), wrong_model=True), executor=executor)
    assert library.ingest_log.failures() == []


def test_a_bundle_without_any_reply_is_retried_and_set_apart(library, executor, tmp_path):
    bundle = tuple(f"{number:08d}" for number in (5, 6, 7, 8))
    report = add(library, Dying(str(tmp_path), unheard=bundle[:2]), executor=executor)
    failed = [(each.video_id, each.error_class, each.problem) for each in report.outcomes if each.is_failed]
    assert sorted(failed) == [(each, "ModelUnreachable", "nobody answers") for each in bundle[:2]]
    ids = [row.video_id for row in library.videos()]
    held = rows_held(library.tables, "detections", "dying", ids)
    assert {id_: held[id_] for id_ in ids} == {id_: 0 if id_ in bundle[:2] else int(id_) for id_ in ids}


def test_an_endpoint_that_is_gone_ends_the_run(library, executor, tmp_path):
    ids = tuple(row.video_id for row in library.videos())
    with pytest.raises(ModelUnreachable, match=r"^nobody answers$"):
        add(library, Dying(str(tmp_path), unheard=ids), executor=executor)
    with pytest.raises(ModelUnreachable, match=r"^nobody answers$"):
        add(library, Dying(str(tmp_path), unheard=ids), ids[:1], executor=executor)
    assert library.ingest_log.failures() == []


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra `text` is not installed")
def test_text_on_screen_by_actors_is_that_of_one_process(executor, tmp_path):
    films = [text_film(tmp_path / f"sign-{n}.mp4", [(2.0, f"SIGN {n + 1}")]) for n in range(2)]
    here, there = (library_of(tmp_path / name, films) for name in ("here", "on-ray"))
    assert add(here, ScreenText()).rows == add(there, ScreenText(), executor=executor).rows == 2
    rows = [[library.screen_text.rows(row.video_id) for row in library.videos()] for library in (here, there)]
    assert rows[0] == rows[1]
    assert [each.text for (each,) in rows[0]] == ["SIGN 1", "SIGN 2"]


def test_by_the_command_line_with_a_real_model(executor, kinodex, tiny_model, tmp_path):
    model = tiny_model("rt_detr")
    films = [tiny_film(tmp_path / f"film-{n}.mp4", 3, n) for n in range(3)]
    libraries = [library_of(tmp_path / name, films) for name in ("here", "on-ray")]
    for library, options in zip(libraries, ((), ("--ray", "--workers", 1)), strict=True):
        ran = kinodex("add", "detections", library.uri, "--model", model, *options, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["added"] == 3
    rows = [[library.detections(row.video_id) for row in library.videos()] for library in libraries]
    assert rows[0] == rows[1]
    assert all(rows[0])
