"""A model's rows are all made alike: `kinodex add` with other settings than before is refused, and says what to do."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.index.errors import KinodexError
from kinodex.index.library import Library
from kinodex.jobs.add.captions import Captions
from kinodex.jobs.add.detections import Detections
from kinodex.jobs.add.run import check_settings, kept_settings
from kinodex.jobs.add.speech import Speech
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import PipelineError
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

HEARD = Speech("/nowhere/m", language="de")
DETECTED = Detections("/nowhere/m", ("boat", "cat"), min_score=0.5)
ASKED = Captions("m", "http://one:1/v1", frames_a_segment=8, input_price=1.0)
CAPTIONED = Captions("n n", max_new_tokens=32)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Two videos; to one of them all these stages were added, without a row."""
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(library, made(video_id, 3, seed=number))
    for stage in (HEARD, DETECTED, ASKED, CAPTIONED):
        assert library.additions.complete(stage.name, stage.model, {"aaaa": 0}, stage.settings) == ()
    return library


@pytest.mark.parametrize(
    ("stage", "model", "options", "got", "held"),
    [
        ("speech", "/nowhere/m", (), "no --language", "--language de"),
        ("speech", "/nowhere/m", ("--language", "en"), "--language en", "--language de"),
        ("detections", "/nowhere/m", ("--labels", "cat,boat"), "--min-score 0.3", "--min-score 0.5"),
        ("captions", "m", ("--base-url", "http://two:1/v1"), "--frames-a-segment 4", "--frames-a-segment 8"),
        ("captions", "n n", (), "--max-new-tokens 96", "--max-new-tokens 32"),
    ],
)
def test_other_settings_are_refused_until_what_is_there_was_taken_out(
    kinodex, library, stage, model, options, got, held
):
    ran = kinodex("add", stage, library.uri, "--model", model, *options)
    assert ran.code == 2
    assert f"got {got}, but {library.uri} holds {stage} by {model}" in ran.error_line
    assert f"made with {held};" in ran.error_line
    remedy = shlex.split(ran.error_line.partition("take out what is there: kinodex ")[2])
    assert kinodex(*remedy, "--yes").code == 0
    assert library.additions.settings(stage, remedy[-1]) == {}


@pytest.mark.parametrize(
    "stage",
    [
        replace(DETECTED, labels=("cat", "boat")),
        replace(ASKED, base_url="http://two:1/v1", input_price=2.0, output_price=1.0, batch=1, max_new_tokens=1),
    ],
)
def test_settings_that_rows_do_not_hang_on_may_change(library, stage):
    with pytest.raises((PipelineError, KinodexError)) as stopped:  # no model goes by these names
        stage.prepare(library)
    assert not isinstance(stopped.value, UsageError)


def test_another_model_in_the_same_folder_is_refused(library, tmp_path):
    """Also one whose files are as long as those of the first."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"one")
    for stage in (Captions(str(folder)), Detections(str(folder)), Speech(str(folder))):
        assert library.additions.complete(stage.name, stage.model, {"aaaa": 0}, kept_settings(stage)) == ()
        check_settings(library, stage)
        (folder / "weights").write_bytes(b"two")
        with pytest.raises(UsageError, match=rf"files of .*model are others .* kinodex remove added \S+ {stage.name}"):
            check_settings(library, stage)
        (folder / "weights").write_bytes(b"one")
