"""`kinodex use-space`: the vectors of an addition become the library's own, and the own ones an addition."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.change_space import use_space
from kinodex.index.errors import LibraryBusy, SpaceMismatch
from kinodex.index.library import Library
from kinodex.index.maintain import health
from kinodex.index.remove import remove_added
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.load import load_text_tower
from kinodex.index.store.schema import key
from tests.support.command import Kinodex
from tests.support.libraries.random_library import (
    SETTINGS,
    add_stage,
    caption,
    empty_library,
    fingerprint,
    found,
    made,
    plain_row,
    vectors_of,
    write,
)
from tests.world.drawn_space import DRAWN

VIDEOS = [made("aaaa", 8, 1, lines=((0.0, 2.0, "a kite"),)), made("bbbb", 4, 2)]
CAPTIONS = {"aaaa": "a brown key in the meadow", "bbbb": "a red boat at sea"}


@pytest.fixture(scope="module")
def drawn() -> Fingerprint:
    return load_text_tower(DRAWN).fingerprint


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, drawn: Fingerprint) -> Path:
    """Two videos and one of text alone, with captions; vectors of the drawn space of the first."""
    opened = empty_library(tmp_path_factory.mktemp("original") / "library", SETTINGS, fingerprint())
    for video in VIDEOS:
        write(opened, video)
        text = CAPTIONS[video.video_id]
        add_stage(opened, "captions", "captioner", {video.video_id: [caption(0, text, video.vectors[0])]})
    assert (
        opened.writer.complete(
            [plain_row("cccc", "text alone", uri="imported:c", duration_s=9.0, space="local-dir:/models/tiny")]
        )
        == ()
    )
    opened.additions.add_space(drawn)
    add_vectors(opened, drawn, "aaaa", 8)
    return Path(opened.uri)


@pytest.fixture
def library(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def add_vectors(library: Library, space: Fingerprint, video_id: str, count: int) -> None:
    library.additions.add_vectors({video_id: vectors_of(count, count, space.dim)}, space)
    assert library.additions.complete("vectors", space.digest, {video_id: count}, {}) == ()


def state(library: Library) -> tuple[str, tuple[str, ...], list[str]]:
    digests = [space.digest for space in library.spaces()]
    return library.fingerprint.digest, health(library, deep=True).problems, sorted(digests)


@pytest.mark.slow
def test_queries_move_at_once_and_the_old_vectors_stay_until_they_are_removed(
    library: Library, drawn: Fingerprint
) -> None:
    with pytest.raises(SpaceMismatch, match="where 1 of 3 videos have no vectors yet, film bbbb among them"):
        use_space(library, drawn.digest)
    add_vectors(library, drawn, "bbbb", 4)
    old, both = fingerprint().digest, sorted([fingerprint().digest, drawn.digest])
    assert state(library) == (old, (), both)
    with library.lease("ingest", "an ingest"), pytest.raises(LibraryBusy):
        use_space(library, DRAWN)
    changed = use_space(library, DRAWN)
    assert (changed.space_digest, changed.before_digest) == (drawn.digest, old)

    moved = Library.open(library.uri)
    assert state(moved) == (drawn.digest, (), both)
    assert moved.tables.schema("videos").field("video_id").metadata == key(1).metadata, "still the primary key"
    assert {row.video_id: row.space for row in moved.videos()} == dict.fromkeys(("aaaa", "bbbb", "cccc"), DRAWN)
    query = vectors_of(4, 4, drawn.dim).vectors[2].astype(np.float32)
    assert found(moved.search.frames(query, k=1)) == [("bbbb", 2)]
    before = VIDEOS[0].vectors[5].astype(np.float32)
    assert found(moved.search.frames(before / np.linalg.norm(before), k=1, space=old)) == [("aaaa", 5)]
    text = moved.load_space(None, "text").embed_text(["the ocean with a boat"])[0]
    assert moved.search.captions("zebra", text, k=1)[0].video_id == "bbbb", "captions were embedded again"
    add_stage(moved, "captions", "another", {"aaaa": [caption(0, "a kite", query.astype(np.float16))]})

    assert use_space(moved, DRAWN).before_digest == drawn.digest, "nothing is left to do"
    gone_back = use_space(moved, old)
    assert gone_back.space_digest == old
    assert gone_back.note is not None, "there is no such model"
    assert "captions are found by their words alone" in gone_back.note
    again = Library.open(library.uri)
    assert [hit.video_id for hit in again.search.captions("boat", before, k=3)] == ["bbbb"]
    assert state(Library.open(library.uri)) == (old, (), both)
    back = Library.open(library.uri)
    remove_added(back, "vectors", drawn.digest, "aaaa", "bbbb")
    assert state(back)[:2] == (old, ())


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_change_that_was_interrupted_is_finished_by_the_next(
    library: Library, drawn: Fingerprint, stop_at: int
) -> None:
    add_vectors(library, drawn, "bbbb", 4)
    steps: list[str] = []

    def stop(step: str) -> None:
        steps.append(step)
        if len(steps) == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use_space(library, DRAWN, on_step=stop)
    between = Library.open(library.uri)
    assert between.fingerprint.digest == (fingerprint() if stop_at < 3 else drawn).digest
    query = vectors_of(1, 1, between.fingerprint.dim).vectors[0].astype(np.float32)
    hits = between.search.hybrid("a boat", query, k=20)
    assert {hit.video_id for hit in hits} == {"aaaa", "bbbb"}, "it answers at any time"
    use_space(between, DRAWN)
    assert state(Library.open(library.uri))[:2] == (drawn.digest, ())


def test_the_command_says_how_the_old_vectors_go(library: Library, drawn: Fingerprint, kinodex: Kinodex) -> None:
    add_vectors(library, drawn, "bbbb", 4)
    ran = kinodex("use-space", library.uri, DRAWN)
    assert ran.code == 0
    said = f"the space of {library.uri} is {DRAWN}; before it was local-dir:/models/tiny"
    assert " ".join(ran.out.split()).startswith(said)
    command = ran.out[ran.out.index("kinodex remove") : ran.out.rindex("`")].replace("\n", " ").split()[1:]
    assert kinodex(*command, "--yes").code == 0
    assert json.loads(kinodex("info", library.uri, "--json").out)["space"] == DRAWN
    assert kinodex("search", library.uri, "a boat").code == 0
