"""Every stage with a real model, ended while it writes and run again: the rows are those of a run in peace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.words import lines_like
from kinodex.index.store.filters import equal
from kinodex.index.store.schema import ADDED_DIGEST
from kinodex.index.sweep import audit
from kinodex.jobs.add.run import Addable, Addition, add
from kinodex.jobs.add.stages import Captions, Chapters, Clips, Detections, ScreenText, Sentences, Speech, Vectors
from kinodex.pipeline.models.screen_text.reader import CARRIED
from tests.support.libraries.random_library import caption, rows_held
from tests.support.models.stage_models import beeps, library_of, tiny_film
from tests.support.screen_text.film import text_film

HAS_VOICES = find_spec("resemblyzer") is not None
STAGES: dict[str, Callable[[str], Addable]] = {
    "captions": lambda model: Captions(model=model, frames_a_segment=2, max_new_tokens=8),
    "clips": lambda model: Clips(model=model, device="cpu"),
    "detections": lambda model: Detections(model=model, min_score=0.5),
    "sentences": lambda model: Sentences(model=model, device="cpu"),
    "speech": lambda model: Speech(model=model, vad=False, speakers=HAS_VOICES),  # its beeps are no speech
    "chapters": lambda model: Chapters(model=model, frames_a_scene=1, max_new_tokens=4),
    "screen_text": lambda model: ScreenText(model=model),
    "vectors": lambda model: Vectors(space=f"local-dir:{model}"),
}
MODELS = {
    "captions": "llava", "clips": "xclip", "detections": "rt_detr", "sentences": "sentences", "speech": "whisper",
    "chapters": "llava", "vectors": "space",
}  # fmt: skip
FILMS, A_COMMIT = 3, 2
"""It takes two commits to add to all of them."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # against a hang; nothing here waits for a time


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A library of three films of a second, to be copied."""
    folder: Path = tmp_path_factory.mktemp("films")
    films = [tiny_film(folder / f"film-{n}.mp4", 1, n, beeps(1.0)) for n in range(FILMS)]
    library_of(folder / "library", films)
    return folder / "library"


@pytest.fixture(scope="module")
def signs(tmp_path_factory) -> Path:
    """The same of films that show a word each."""
    folder: Path = tmp_path_factory.mktemp("signs")
    library_of(folder / "library", [text_film(folder / f"sign-{n}.mp4", [(1.0, f"SIGN {n}")]) for n in range(FILMS)])
    return folder / "library"


@pytest.mark.parametrize("name", STAGES)
def test_ended_while_it_writes(name, tiny_model, request, tmp_path, monkeypatch):
    monkeypatch.setattr("kinodex.jobs.add.run.VIDEOS_A_COMMIT", A_COMMIT)
    films: Path = request.getfixturevalue("signs" if name == "screen_text" else "plain")
    peaceful, killed = (Library.open(str(shutil.copytree(films, tmp_path / place))) for place in ("one", "other"))
    if name == "sentences":
        for library in (peaceful, killed):
            caption_all(library)
    model = CARRIED if name == "screen_text" else str(tiny_model(MODELS[name]))
    stage = STAGES[name](model)
    key = add(peaceful, stage).model
    with pytest.raises(Killed):
        add(killed, cast(Addable, Dying(stage)))
    assert any(rows_held(killed.tables, name, key, [row.video_id for row in killed.videos()]).values())
    for row in killed.videos():
        if row not in killed.additions.pending(name, key):
            assert rows_of(killed, name, row.video_id) == rows_of(peaceful, name, row.video_id)
    add(killed, stage)
    assert killed.additions.pending(name, key) == []
    ids = [row.video_id for row in killed.videos()]
    assert any(rows_of(peaceful, name, id_) for id_ in ids)
    assert [rows_of(killed, name, id_) for id_ in ids] == [rows_of(peaceful, name, id_) for id_ in ids]
    held = [rows_held(library.tables, name, key, ids) for library in (killed, peaceful)]
    assert held[0] == held[1]
    assert audit(killed, deep=True).problems == ()
    digests = [
        library.tables.rows("additions", equal("stage", name)).sort_by("video_id") for library in (killed, peaceful)
    ]
    assert digests[0][ADDED_DIGEST] == digests[1][ADDED_DIGEST]


class Killed(BaseException):
    """Ends a run as a kill does: nothing that cleans up or keeps what was made catches it."""


class Dying:
    """A stage that ends its run as soon as it has written rows for the first time, before readers see them."""

    def __init__(self, stage: Addable) -> None:
        self._stage = stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    @contextmanager
    def open(self, library: Library) -> Iterator[Any]:
        with self._stage.open(library) as addition:
            yield DyingWork(addition)


class DyingWork:
    """The work of such a stage."""

    def __init__(self, addition: Addition) -> None:
        self._addition = addition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._addition, name)

    def write(self, rows: Mapping[str, Any]) -> None:
        self._addition.write(rows)
        raise Killed


def caption_all(library: Library) -> None:
    """Give every video captions, which no model wrote."""
    ids = [row.video_id for row in library.videos()]
    library.additions.add_captions({id_: [caption(0, f"a red boat {id_}"), caption(1, "snow")] for id_ in ids}, "m")
    assert library.additions.complete("captions", "m", dict.fromkeys(ids, 2), {}) == ()


def like_all(library: Library, video_id: str) -> list[Hit]:
    """All lines of a video that are found by meaning, however little they are like the words."""
    meaning = library.sentences.meaning("two dogs")
    assert meaning is not None
    scope = Scope((video_id,))
    return lines_like(library.tables, library.visible, replace(meaning, least_cosine=-1.0), scope, 10)


def rows_of(library: Library, name: str, video_id: str) -> object:
    """Rows of a stage as readers see them."""
    if name == "sentences":
        return [(hit.text, round(hit.cosine or 0, 3)) for hit in like_all(library, video_id)]
    if name == "clips":
        space = library.visible.usual_space(name)
        assert space is not None
        held_clips = library.additions.clips(video_id, space)
        return held_clips.start_s.tolist(), held_clips.vectors.astype(float).round(2).tolist()
    if name == "captions":
        return [(c.segment_no, c.text, round(c.confidence or 0, 5)) for c in library.captions(video_id)]
    if name == "detections":
        return [(d.frame_no, d.label, d.track_id, np.round(d.box, 4).tolist()) for d in library.detections(video_id)]
    if name == "speech":
        return library.speech(video_id), library.speakers.rows()
    if name == "chapters":
        return library.chapters.rows(video_id)
    if name == "screen_text":
        return library.screen_text(video_id)
    held = library.vectors(video_id, space=library.spaces()[1].digest)
    return held.frame_no.tolist(), held.vectors.astype(float).round(2).tolist()
