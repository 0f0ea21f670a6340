"""`kinodex add`: what is left out, what fails alone, what ends a run, and other settings that are refused."""

from __future__ import annotations

import gc
import shlex
import weakref
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kinodex.agent.errors import AllRejected, ModelRejected, ModelUnreachable
from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.store.filters import equal
from kinodex.index.store.schema import CHECKSUM
from kinodex.index.sweep import audit
from kinodex.jobs.add.run import AddedRows, add, add_in_process
from kinodex.jobs.add.stages import Captions, Chapters, Detections, Speech
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import PipelineError
from tests.support.faults.operations import BASES, STAGES, Given
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.models import stage_models as stage_kit
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.scenes.chaptered_film import make_film


@pytest.mark.slow
def test_a_picture_that_cannot_be_read_or_was_damaged_fails_its_video_alone(library, tiny_model):
    sound, damaged, _ = sorted(library.video_ids())
    video = library.video(sound)
    other = replace(video, video_id="f" * 32, title="broken", uri="/small_films/broken.mp4", frames=1, segments=0)
    frame = replace(stage_kit.stored_row(library, sound), jpeg=b"no picture")
    library.writer.add_frames({other.video_id: [frame]})
    assert library.writer.complete([other]) == ()
    library.tables.update("frames", equal("video_id", damaged), {CHECKSUM: 1})
    addition = Detections(model=str(tiny_model("rt_detr")))
    report = add(library, addition)
    assert (report.added, report.failed) == (2, 2)
    pending = {row.video_id for row in library.additions.pending("detections", addition.model)}
    assert pending == {damaged, other.video_id}
    failures = {row.uri: (row.stage, row.error_class) for row in library.ingest_log.failures()}
    assert failures == {
        other.uri: ("detections", "PictureError"),
        library.video(damaged).uri: ("detections", "DamagedRows"),
    }
    assert library.detection_labels(sound)


def test_rows_of_a_process_that_was_taken_for_dead_do_not_double_a_video(tmp_path):
    """They come after the leftovers were deleted and before the video is shown: it is refused, and done next time."""
    BASES["two"](Given(tmp_path), tmp_path / "library")
    library, stage = Library.open(str(tmp_path / "library")), STAGES["detections"]

    def make_twice(library: Library, rows: Mapping[str, Any]) -> None:
        stage.make(library, rows)
        stage.make(library, {"bbbb": rows["bbbb"]})

    doubling = replace(stage, make=make_twice)
    assert [each.title for each in add(library, doubling).outcomes if each.error_class == "Rejected"] == ["film bbbb"]
    assert library.detections("bbbb") == []
    assert add(library, stage).added == 1
    assert audit(library, deep=True).problems == ()
    assert library.ingest_log.failures() == []


@pytest.mark.slow
def test_one_run_of_an_addition_at_a_time_and_videos_that_come_meanwhile(library, small_films, tmp_path, tiny_model):
    stage = Detections(model=str(tiny_model("rt_detr")))
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


@pytest.mark.slow
def test_a_video_that_fails_in_any_way_fails_alone_and_is_tried_again(library):
    bad = library.videos()[0].video_id
    for error in (ValueError, ModelUnreachable, ModelRejected, None):
        report = add(library, Failing(error, bad))
        assert (report.failed, report.added) == (1, len(library.videos()) - 1), error
        assert [each.uri for each in library.ingest_log.failures()] == [library.video(bad).uri]
        assert [each.video_id for each in library.additions.pending("captions", "sick")] == [bad]
        assert add(library, Failing(None, "")).added == 1
        assert library.ingest_log.failures() == []
        library.additions.discard("captions", "sick", *library.video_ids())


@pytest.mark.slow
def test_an_endpoint_that_is_gone_ends_the_run_and_what_was_made_is_kept(tmp_path):
    library = make_film(tmp_path / "library", "aa", "bb", "cc", "dd", "ee")
    first, *others = [each.video_id for each in library.videos()]
    for error in (ModelUnreachable, AllRejected):
        with pytest.raises(error):
            add(library, Failing(error, *others))
        assert first not in {each.video_id for each in library.additions.pending("captions", "sick")}, error
        assert library.ingest_log.failures() == []
        assert add(library, Failing(None, "")).added == 4
        library.additions.discard("captions", "sick", first, *others)


class Failing:
    """A stage that captions every segment, and raises this error (None: makes no rows) at some videos."""

    name, model, runs_on = "captions", "sick", "cpu"
    settings: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, error, *bad):
        self.error, self.bad = error, bad

    @contextmanager
    def open(self, library):
        self.library = library
        yield self

    def share(self, processes):
        return self

    def prepare(self):
        pass

    def again(self):
        return ()

    def rows_of(self, video):
        if video.video_id in self.bad and self.error is not None:
            raise self.error("it is sick")
        if video.video_id in self.bad:
            return AddedRows([], 0, failed=PipelineError("no rows"))
        rows = [Caption(each.segment_no, each.start_s, each.end_s) for each in self.library.segments(video.video_id)]
        return AddedRows(rows, len(rows))

    def write(self, rows):
        self.library.additions.add_captions(rows, self.model)


class Caption(NamedTuple):
    """Caption of a segment."""

    segment_no: int
    start_s: float
    end_s: float
    text: str = "a boat"
    confidence: float | None = None
    vector: object = None


HEARD = Speech(model="/nowhere/m", language="de")
DETECTED = Detections(model="/nowhere/m", labels=("boat", "cat"), min_score=0.5)
ASKED = Captions(model="m", base_url="http://one:1/v1", frames_a_segment=8, input_price=1.0)
CAPTIONED = Captions(model="/nowhere/n n", max_new_tokens=32)
TOLD = Chapters(model="s", frames_a_scene=2)


@pytest.fixture
def added_to(tmp_path: Path) -> Library:
    """Two videos; to one of them all these stages were added, without a row."""
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(library, made(video_id, 3, seed=number))
    for stage in (HEARD, DETECTED, ASKED, CAPTIONED, TOLD):
        assert library.additions.complete(stage.name, str(stage.key), {"aaaa": 0}, stage.settings) == ()
    return library


REFUSED = (
    ("speech", "/nowhere/m", (), "no --language", "--language de"),
    ("speech", "/nowhere/m", ("--language", "en"), "--language en", "--language de"),
    ("detections", "/nowhere/m", ("--labels", "cat,boat"), "--min-score 0.3", "--min-score 0.5"),
    ("captions", "m", ("--base-url", "http://two:1/v1"), "--frames-a-segment 4", "--frames-a-segment 8"),
    ("captions", "/nowhere/n n", (), "--max-new-tokens 96", "--max-new-tokens 32"),
    ("chapters", "s", (), "--frames-a-scene 4", "--frames-a-scene 2"),
)


@pytest.mark.slow
def test_other_settings_are_refused_until_what_is_there_was_taken_out(kinodex, added_to):
    remedies = set()
    for name, model, options, got, held in REFUSED:
        command = "chapters" if name == "chapters" else name
        ran = kinodex("add", command, added_to.uri, "--model", model, *options)
        assert ran.code == 2, (name, options)
        assert f"got {got}, but {added_to.uri} holds {name} by {model}" in ran.error_line
        assert f"made with {held};" in ran.error_line
        remedies.add((name, *shlex.split(ran.error_line.partition("take out what is there: kinodex ")[2])))
    for name, *remedy in remedies:
        assert kinodex(*remedy, "--yes").code == 0
        assert added_to.additions.settings(name, remedy[-1]) == {}, remedy


def test_another_model_in_the_same_folder_is_refused(added_to, tmp_path):
    """Also one whose files are as long as those of the first."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"one")
    for kind in (Captions, Detections, Speech):
        stage = kind(model=str(folder))
        assert added_to.additions.complete(stage.name, stage.model, {"aaaa": 0}, stage.kept) == ()
        kind(model=str(folder)).check(added_to, stage.model)
        (folder / "weights").write_bytes(b"two")
        with pytest.raises(UsageError, match=rf"files of .*model are others .* kinodex remove added \S+ {stage.name}"):
            kind(model=str(folder)).check(added_to, stage.model)
        (folder / "weights").write_bytes(b"one")


@pytest.mark.slow
def test_a_model_is_let_go_of_at_the_end_of_its_run_also_of_one_that_fails(library, tiny_model):
    """A server that adds again and again would else hold every model that it ever loaded."""
    stage, models = Detections(model=str(tiny_model("rt_detr")), min_score=0.5), []

    def adding(library, stage, addition, videos, lease, take):
        models.append(weakref.ref(addition.detector))
        add_in_process(library, stage, addition, videos[:1], lease, take)

    def failing(library, stage, addition, videos, lease, take):
        models.append(weakref.ref(addition.detector))
        raise RuntimeError("ended")

    assert add(library, stage, executor=adding).added == 1
    with pytest.raises(RuntimeError, match="ended"):
        add(library, stage, executor=failing)
    gc.collect()
    assert [model() for model in models] == [None, None]
