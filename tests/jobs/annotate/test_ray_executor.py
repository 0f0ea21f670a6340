"""`kinodex add --ray`: the same rows as in one process, with workers that die on the way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from index.annotations.additions import rows_held
from index.library import Library
from index.rows import VideoRow
from jobs.annotate.detections import NewDetection
from jobs.annotate.run import add
from jobs.annotate.stage import StageRows
from pipeline.errors import WrongModel
from tests.support import stage_models as stage_kit
from tests.support.command import runner
from tests.support.random_library import SETTINGS, fingerprint, made
from tests.support.stage_models import library_of, tiny_film

pytest.importorskip("ray")
VIDEOS = 16


@dataclass(frozen=True)
class Dying:
    """As many rows as the video's number says; some videos kill who writes them, for good or once."""

    marks: str
    always: str = ""
    once: str = ""
    wrong_model: bool = False
    name: str = "detections"
    model: str = "dying"
    device: str = "cpu"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def prepare(self, library: Library) -> None:
        pass

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        if self.wrong_model:
            raise WrongModel("this model is for something else")
        rows = [NewDetection(n, float(n), "thing", 0.5, (0, 0, 1, 1), n) for n in range(int(video.video_id))]
        return StageRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_detections(rows, self.model)
        mark = Path(self.marks) / f"{os.getpid()}"
        is_first = not list(Path(self.marks).iterdir())
        mark.touch()
        if self.always in rows or (self.once in rows and is_first):
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def executor():
    from jobs.annotate.ray_executor import ray_executor

    with ray_executor(2, None) as begun:
        yield begun


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


def test_by_the_command_line_with_a_real_model(executor, tmp_path, monkeypatch, capsys):
    model = stage_kit.rt_detr(tmp_path / "rt_detr")
    films = [tiny_film(tmp_path / f"film-{n}.mp4", 3, n) for n in range(3)]
    libraries = [library_of(tmp_path / name, films) for name in ("here", "on-ray")]
    kinodex = runner(monkeypatch, capsys)
    for library, options in zip(libraries, ((), ("--ray", "--workers", 1)), strict=True):
        ran = kinodex("add", "detections", library.uri, "--model", model, *options, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["added"] == 3
    rows = [[library.detections(row.video_id) for row in library.videos()] for library in libraries]
    assert rows[0] == rows[1]
    assert all(rows[0])
