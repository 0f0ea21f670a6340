"""A library without a space: its tables, what refuses to compare frames there, a repair, and its first space."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from kinodex.index.change_space import use_space
from kinodex.index.datasets.plan import plan_frames
from kinodex.index.errors import LibraryDamaged, NoVectors, SpaceMismatch
from kinodex.index.library import Library
from kinodex.index.maintain import health
from kinodex.index.repair import repair
from kinodex.index.rows import RunRow, SourceRow
from kinodex.index.spaces.fingerprint import NO_SPACE
from kinodex.index.store.schema import SPACE_KEY
from tests.support.libraries.random_library import (
    SETTINGS,
    WHEN,
    add_stage,
    caption,
    empty_library,
    fingerprint,
    made,
    vectors_of,
    write,
)

VIDEOS = [made("aaaa", 8, 1, lines=((0.0, 2.0, "a kite"),)), made("bbbb", 4, 2)]


@pytest.fixture
def words(tmp_path: Path) -> Library:
    library = empty_library(tmp_path / "words", SETTINGS, NO_SPACE)
    for video in VIDEOS:
        write(library, video)
    add_stage(library, "captions", "hand", {"aaaa": [caption(0, "a red boat", None)]})
    return Library.open(library.uri)


def test_frames_are_there_and_vectors_are_not(words: Library) -> None:
    assert not any("vectors" in name for name in words.tables.names())
    assert (words.spaces(), words.space().name, words.space("none")) == ((), "none", words.fingerprint)
    assert len(words.frames("aaaa", range(8))) == 8
    assert [hit.found_in for hit in words.search.hybrid("kite", None)] == ["speech"]
    assert [hit.text for hit in words.search.captions("boat")] == ["a red boat"]
    assert plan_frames(words, ["jpeg"]).rows == 12
    found = health(words, deep=True)
    assert not (found.audit.broken or found.audit.orphans or found.audit.altered)


def test_what_compares_frames_names_the_command_that_makes_vectors(words: Library) -> None:
    vector = VIDEOS[0].vectors[0]
    for compare in (
        lambda: words.search.frames(vector),
        lambda: words.vectors("aaaa"),
        lambda: words.load_space(None, "text"),
        lambda: words.text_embedder()(["a kite"]),
        lambda: plan_frames(words, ["vector"]),
    ):
        with pytest.raises(NoVectors, match=r"kinodex add vectors .* --space photo") as raised:
            compare()
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    with pytest.raises(SpaceMismatch, match="was made without one"):
        words.check_space(fingerprint())


def test_a_space_of_no_dimensions_is_none_of_a_library(words: Library) -> None:
    altered = replace(NO_SPACE, name="some")
    videos = words.tables["videos"]
    videos.update_schema_metadata({SPACE_KEY.decode(): json.dumps(asdict(altered), sort_keys=True)})
    with pytest.raises(LibraryDamaged, match="it has 0 dimensions"):
        Library.open(words.uri)


def test_the_first_space_that_holds_all_frames_becomes_its_own(words: Library) -> None:
    space = fingerprint()
    words.additions.add_space(space)
    words.additions.add_vectors({"aaaa": vectors_of(8, 8, space.dim)}, space)
    words.additions.complete("vectors", space.digest, {"aaaa": 8}, {})
    with pytest.raises(SpaceMismatch, match="1 of 2 videos have no vectors"):
        use_space(words, space.digest)
    words.additions.add_vectors({"bbbb": vectors_of(4, 4, space.dim)}, space)
    words.additions.complete("vectors", space.digest, {"bbbb": 4}, {})
    changed = use_space(words, space.digest)
    opened = Library.open(words.uri)
    assert (opened.fingerprint, changed.before) == (space, "none")
    assert len(opened.vectors("aaaa").frame_no) == 8
    assert [row.stage for row in opened.additions.facts()] == ["captions"]
    found = health(opened, deep=True)
    assert not (found.audit.broken or found.audit.orphans or found.audit.altered)


def test_its_videos_are_made_again_by_a_repair(words: Library) -> None:
    words.ingest_log.add_sources(
        [SourceRow(f"/films/{each.video_id}.mp4", each.video_id, 1, "", WHEN, "") for each in VIDEOS]
    )
    report = {"settings": SETTINGS | {"space_digest": NO_SPACE.digest}}
    words.ingest_log.add_run(RunRow("1", "ingest", "done", WHEN, WHEN, report))
    words.writer.add_segments({"aaaa": [], "bbbb": []})
    shutil.rmtree(Path(words.uri) / "videos.lance")
    repair(words.uri, SETTINGS, lambda uri, video_id: None)
    assert Library.open(words.uri).fingerprint == NO_SPACE
