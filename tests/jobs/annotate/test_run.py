"""`kinodex add` from end to end with tiny models of the real kinds: rows, search, what is left out, what fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kinodex.agent.errors import AllRejected, ModelRejected, ModelUnreachable
from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.store.schema import CHECKSUM, equal
from kinodex.jobs.add.captions import Captions
from kinodex.jobs.add.detections import Detections
from kinodex.jobs.add.run import AddedRows, add
from kinodex.jobs.add.speech import Speech
from kinodex.pipeline.errors import PipelineError
from tests.support.command import json_of
from tests.support.models import stage_models as stage_kit
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.scenes.chaptered_film import make_film
from tests.support.servers.chat_server import ChatServer


def test_a_picture_that_cannot_be_read_fails_its_video_alone(library, tiny_model, small_films, tmp_path):
    broken = library_of(tmp_path / "broken", small_films[1:2])
    video = broken.videos()[0]
    frame = stage_kit.stored_row(broken, video.video_id)
    other = replace(video, video_id="f" * 32, title="broken", uri="/small_films/broken.mp4", frames=1, segments=0)
    broken.writer.add_frames({other.video_id: [replace(frame, jpeg=b"no picture")]})
    assert broken.writer.complete([other]) == ()
    report = add(broken, Detections(str(tiny_model("rt_detr"))))
    assert (report.added, report.failed) == (1, 1)
    failure = broken.ingest_log.failures()[0]
    assert (failure.uri, failure.stage, failure.error_class) == (other.uri, "detections", "PictureError")


def test_a_picture_that_was_damaged_fails_its_video_alone(small_films, tmp_path, tiny_model):
    library = library_of(tmp_path / "damaged", small_films[:2])
    damaged, sound = sorted(library.video_ids())
    library.tables.update("frames", equal("video_id", damaged), {CHECKSUM: 1})
    stage = Detections(str(tiny_model("rt_detr")))
    report = add(library, stage)
    assert (report.added, report.failed) == (1, 1)
    assert [row.video_id for row in library.additions.pending("detections", stage.model)] == [damaged]
    assert [(each.stage, each.error_class) for each in library.ingest_log.failures()] == [("detections", "DamagedRows")]
    assert library.detection_labels(sound)


def test_one_run_a_stage_at_a_time_and_videos_that_come_meanwhile(library, small_films, tmp_path, tiny_model):
    stage = Detections(str(tiny_model("rt_detr")))
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


def test_a_video_that_is_removed_meanwhile_fails_alone(kinodex, tmp_path):
    library = make_film(tmp_path / "library", "aa", "bb", "cc", "dd")

    def reply(body: dict) -> dict:
        Library.open(library.uri).writer.discard("dd")
        return {"title": "A place", "summary": "It is seen for a minute."}

    with ChatServer(reply) as server:
        ran = json_of(
            kinodex,
            *("add", "summaries", library.uri, "--model", "tester", "--base-url", server.base_url, "--batch", 1),
            code=3,
        )
    assert (ran["added"], ran["failed"]) == (3, 1)
    assert "removed from the library while this ran" in str(ran)
    assert all(library.scenes.rows(video_id) for video_id in ("aa", "bb", "cc"))


@pytest.mark.parametrize("kind", ["exception", "unreachable", "refused", "no rows"])
def test_a_video_that_fails_in_any_way_fails_alone_and_is_tried_again(library, kind):
    bad = library.videos()[0].video_id
    assert [each.video_id for each in library.videos() if each.video_id != bad]
    sick = Failing({"exception": ValueError, "unreachable": ModelUnreachable, "refused": ModelRejected}.get(kind), bad)
    report = add(library, sick)
    assert (report.failed, report.added) == (1, len(library.videos()) - 1)
    assert [each.uri for each in library.ingest_log.failures()] == [library.video(bad).uri]
    assert [each.video_id for each in library.additions.pending("captions", "sick")] == [bad]
    assert add(library, Failing(None, "")).added == 1
    assert library.ingest_log.failures() == []


@pytest.mark.parametrize("error", [ModelUnreachable, AllRejected])
def test_an_endpoint_that_is_gone_ends_the_run_and_what_was_made_is_kept(tmp_path, error):
    library = make_film(tmp_path / "library", "aa", "bb", "cc", "dd", "ee")
    first = library.videos()[0].video_id
    with pytest.raises(error):
        add(library, Failing(error, *[each.video_id for each in library.videos()[1:]]))
    assert first not in {each.video_id for each in library.additions.pending("captions", "sick")}
    assert library.ingest_log.failures() == []
    assert add(library, Failing(None, "")).added == 4


class Failing:
    """A stage that captions every segment, and raises this error (None: makes no rows) at some videos."""

    name, model, device = "captions", "sick", "cpu"
    settings: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, error, *bad):
        self.error, self.bad = error, bad

    def prepare(self, library):
        pass

    def rows_of(self, library, video):
        if video.video_id in self.bad and self.error is not None:
            raise self.error("it is sick")
        if video.video_id in self.bad:
            return AddedRows([], 0, failed=PipelineError("no rows"))
        rows = [Caption(each.segment_no, each.start_s, each.end_s) for each in library.segments(video.video_id)]
        return AddedRows(rows, len(rows))

    def write(self, library, rows):
        library.additions.add_captions(rows, self.model)


class Caption(NamedTuple):
    """Caption of a segment."""

    segment_no: int
    start_s: float
    end_s: float
    text: str = "a boat"
    confidence: float | None = None
    vector: object = None


def test_stages_can_be_sent_and_name_what_they_depend_on():
    import pickle

    stages = (Captions("a"), Detections("b", ("x", "y")), Speech("c"))
    for stage in stages:
        assert pickle.loads(pickle.dumps(stage)) == stage
        assert "device" not in stage.settings
        json.dumps(dict(stage.settings))
    assert Captions("a", frames_a_segment=2).settings != Captions("a").settings
