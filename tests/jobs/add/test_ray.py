"""`kinodex add --ray`: the same rows as in one process, with workers that die on the way."""

from __future__ import annotations

from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.add.functions import function_of
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Extracts, Map
from kinodex.pipeline.errors import WrongModel
from tests.jobs.add.test_extract import WHERE, row_of
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, rows_held
from tests.support.models.dying_stage import Dying
from tests.support.scenes.chaptered_film import make_film
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.ray_node import RayCluster

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1200)]  # against a hang; it waits for no time
VIDEOS = 16


@pytest.fixture(scope="module")
def executor(ray_cluster: RayCluster):
    from kinodex.jobs.add.ray import ray_executor

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


def test_a_function_of_a_file_is_sent_to_the_workers(library, executor, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\n\n\ndef norm(vectors):\n    return np.linalg.norm(vectors, axis=1)\n")
    assert add(library, Map(function=function_of(f"{file}:norm"), into="norm"), executor=executor).added == VIDEOS
    rows = library.additions.mapped("norm")
    assert rows.num_rows == library.info().frames and abs(rows["norm"].to_numpy() - 1).max() < 0.01


def test_an_extract_has_the_rows_of_a_run_in_one_process(executor, tmp_path, monkeypatch):
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = make_film(tmp_path / "films", "aa", "bb", "cc")
    with ChatServer(row_of) as server:
        asked: Any = {"row": WHERE, "model": "tester", "base_url": server.base_url}
        stages = [Extracts(into=name, **asked) for name in ("here", "there")]
        assert [add(library, stages[0]).rows, add(library, stages[1], executor=executor).rows] == [12, 12]
    columns = ["video_id", "part_no", *WHERE["properties"], "evidence_start_s"]
    here, there = (library.extracts.rows(name).select(columns) for name in ("here", "there"))
    assert here == there and audit(library, deep=True).problems == ()


def test_what_makes_the_whole_run_senseless_ends_it_in_the_workers_own_words(library, executor, tmp_path):
    with pytest.raises(WrongModel, match=r"^this model is for something else$"):
        add(library, Dying(str(tmp_path), wrong_model=True), executor=executor)
    assert library.ingest_log.failures() == []
