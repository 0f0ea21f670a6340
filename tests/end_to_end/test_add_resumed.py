"""Every stage with a real model, killed while it writes and run again: the rows are those of a run in peace."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.annotations.additions import rows_held
from index.library import Library
from jobs.annotate.captions import Captions
from jobs.annotate.detections import Detections
from jobs.annotate.run import add
from jobs.annotate.speech import Speech
from jobs.annotate.stage import Stage
from jobs.annotate.vectors import Vectors
from tests.support import stage_models as stage_kit
from tests.support.stage_models import beeps, library_of, tiny_film
from tests.support.tiny_models import TINY, write_model

STAGES: dict[str, Callable[[Path], Stage]] = {
    "captions": lambda models: Captions(str(models / "llava"), frames_a_segment=2, max_new_tokens=8),
    "detections": lambda models: Detections(str(models / "rt_detr"), min_score=0.5),
    "speech": lambda models: Speech(str(models / "whisper")),
    "vectors": lambda models: Vectors(f"local-dir:{models / 'space'}"),
}
OPTIONS = {
    "captions": ("llava", "--frames-a-segment", "2", "--max-new-tokens", "8"),
    "detections": ("rt_detr", "--min-score", "0.5"),
    "speech": ("whisper",),
    "vectors": ("space",),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models")
    for make in (stage_kit.llava, stage_kit.rt_detr, stage_kit.whisper):
        make(folder / make.__name__)
    write_model(folder / "space", TINY)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A library of ten short films, to be copied; it takes two commits to add to all of them."""
    folder: Path = tmp_path_factory.mktemp("films")
    films = [tiny_film(folder / f"film-{n}.mp4", 2, n, beeps(2.0)) for n in range(10)]
    library_of(folder / "library", films)
    return folder / "library"


@pytest.mark.parametrize("name", STAGES)
def test_killed_while_it_writes(name, models, plain, tmp_path):
    peaceful, killed = (Library.open(str(shutil.copytree(plain, tmp_path / place))) for place in ("one", "other"))
    stage = STAGES[name](models)
    add(peaceful, stage)
    kill_when_it_writes(killed, stage, models)
    for row in killed.videos():
        if row not in killed.additions.pending(name, stage.model):
            assert rows_of(killed, name, row.video_id) == rows_of(peaceful, name, row.video_id)
    add(killed, stage)
    assert killed.additions.pending(name, stage.model) == []
    ids = [row.video_id for row in killed.videos()]
    assert any(rows_of(peaceful, name, id_) for id_ in ids)
    assert [rows_of(killed, name, id_) for id_ in ids] == [rows_of(peaceful, name, id_) for id_ in ids]
    held = [rows_held(library.tables, name, stage.model, ids) for library in (killed, peaceful)]
    assert held[0] == held[1]


def kill_when_it_writes(library: Library, stage: Stage, models: Path) -> None:
    """Run the command, and kill it as soon as it has written a row."""
    model, *options = OPTIONS[stage.name]
    place = f"local-dir:{models / model}" if stage.name == "vectors" else str(models / model)
    command = [sys.executable, "-c", "from jobs.cli.main import main; main()", "add", stage.name, library.uri]
    ids = [row.video_id for row in library.videos()]
    stage.prepare(library)
    with subprocess.Popen([*command, "--model", place, *options], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not rows_held(library.tables, stage.name, stage.model, ids):
            time.sleep(0.01)
        process.kill()


def rows_of(library: Library, name: str, video_id: str) -> object:
    """What readers see of a stage."""
    if name == "captions":
        return [(c.segment_no, c.text, round(c.confidence or 0, 5)) for c in library.captions(video_id)]
    if name == "detections":
        return [(d.frame_no, d.label, d.track_id, np.round(d.box, 4).tolist()) for d in library.detections(video_id)]
    if name == "speech":
        return library.transcript(video_id)
    held = library.vectors(video_id, space=library.spaces()[1].digest)
    return held.frame_no.tolist(), held.vectors.astype(float).round(2).tolist()
