"""Values that changed on the disk are found, with their video and table, whatever changed and wherever it lies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.rows import SceneRow, SegmentRow
from kinodex.index.store.database import FILE_FORMAT, table_place
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.schema import ADDED_DIGEST, ADDITIONS, SENTENCES_PREFIX, VIDEO_DIGESTS, equal, vectors_table
from kinodex.index.sweep import AlteredRows, audit
from tests.support.libraries.random_library import (
    SETTINGS,
    caption,
    detection,
    empty_library,
    fingerprint,
    made,
    other_space,
    spoken,
    unit_vectors,
    vectors_of,
)
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences
from tests.support.screen_text.lines import Line

FRAMES = 6
SENTENCES = ConceptModel().space
OWN, OTHER = vectors_table(fingerprint()), vectors_table(other_space())
EMBEDDED = vectors_table(SENTENCES, SENTENCES_PREFIX)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = Library.create(str(tmp_path_factory.mktemp("original") / "library"), SETTINGS, fingerprint())
    fill(library)
    return Path(library.uri)


@pytest.fixture
def library(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def fill(library: Library) -> None:
    """Two videos with all that ingest writes, and all that can be added."""
    ids = ("aaaa", "bbbb")
    for seed, video_id in enumerate(ids):
        video = made(video_id, FRAMES, seed, lines=((0.0, 2.0, "a kite over the sea"), (3.0, 4.0, "and a boat")))
        written = library.writer.add_frames({video_id: video.frame_rows()})
        written["segments"] = library.writer.add_segments({video_id: [SegmentRow(video_id, 0, 0.0, 6.0, "shot")]})
        written["transcript"] = library.writer.add_transcript({video_id: video.transcript()})
        assert library.writer.complete([replace(video.video_row(), segments=1)], digests=written) == ()
    for stage in ("text", "summaries"):
        library.additions.discard_leftovers(stage, "m")  # which makes the table
    vector = unit_vectors(1, 7)[0]
    scene = SceneRow("", "scene", 0, 0.0, 6.0, 0, 1, "The sea", "A kite flies.", "m")
    library.additions.add_captions({id_: [caption(0, "a kite", vector), caption(1, "no vector")] for id_ in ids}, "m")
    library.additions.add_detections({id_: [detection(0, "kite", 0.9)] for id_ in ids}, "m")
    library.additions.add_speech({id_: [spoken(0, "look")] for id_ in ids}, "m")
    library.screen_text.add({id_: [Line(0.0, 1.0, "EXIT")] for id_ in ids}, "m")
    library.scenes.add({video_id: [replace(scene, video_id=video_id)] for video_id in ids})
    library.additions.add_space(other_space())
    library.additions.add_vectors(dict.fromkeys(ids, vectors_of(FRAMES, 1)), other_space())
    counts = {"captions": 2, "detections": 1, "speech": 1, "text": 1, "summaries": 1}
    for stage, count in counts.items():
        assert library.additions.complete(stage, "m", dict.fromkeys(ids, count), {"batch": 4}) == ()
    assert library.additions.complete("vectors", other_space().digest, dict.fromkeys(ids, FRAMES), {}) == ()
    add_sentences(library, ConceptModel())


def alter(library: Library, table: str, column: str, change: Callable[[Any], Any], row: int = 0) -> None:
    """Change a value of the first video's rows, as no writer of the library does."""
    rows = library.tables.rows(table).sort_by("video_id")
    values = rows[column].to_pylist()
    values[row] = change(values[row])
    kind = rows.schema.field(column).type
    changed = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), pa.array(values, kind))
    place = table_place(library.uri, table)
    lance.write_dataset(changed, place, mode="overwrite", data_storage_version=FILE_FORMAT)


def flipped(vector: list[float]) -> list[np.float16]:
    return [np.float16(-value) for value in vector]


def with_number(number: float) -> Callable[[list[float]], list[np.float16]]:
    return lambda vector: [np.float16(number), *map(np.float16, vector[1:])]


def least_bit(vector: list[float]) -> list[np.float16]:
    bits = np.array(vector, np.float16).view(np.uint16)
    bits[-1] ^= 1
    return list(bits.view(np.float16))


def other_word(text: str) -> str:
    return text.replace("i", "o").replace("E", "F").replace("oo", "oa")


PLAIN = [
    ("videos", "duration_s", lambda value: value * 2, "other values in videos than were written"),
    ("videos", "title", str.upper, "other values in videos than were written"),
    ("videos", "fps", lambda value: None, "other values in videos than were written"),
    ("videos", VIDEO_DIGESTS, lambda value: value[:-3] + value[-2:], "other values in videos than were written"),
    ("segments", "end_s", lambda value: 5.0, "other values in segments than were written"),
    ("transcript", "text", other_word, "other values in transcript than were written"),
    ("transcript", "start_s", lambda value: -0.0, "other values in transcript than were written"),
    ("captions", "text", other_word, "captions by m other than was added"),
    ("captions", "vector", flipped, "captions by m other than was added"),
    ("detections", "box", lambda box: [*box[:3], 0.5], "detections by m other than was added"),
    ("screen_text", "text", other_word, "text by m other than was added"),
    ("scenes", "title", str.upper, "summaries by m other than was added"),
    ("additions", "settings", lambda text: text.replace("4", "8"), "captions by m other than was added"),
]
DEEP = [
    ("frames", "time_s", lambda value: 0.5, "other values in frames than were written"),
    (OWN, "vector", flipped, f"other values in {OWN} than were written"),
    (OWN, "vector", with_number(6e4), f"other values in {OWN} than were written"),
    (OWN, "vector", with_number(float("nan")), f"other values in {OWN} than were written"),
    (OWN, "vector", least_bit, f"other values in {OWN} than were written"),
    (OTHER, "vector", flipped, f"vectors by {other_space().digest} other than was added"),
    (EMBEDDED, "vector", flipped, f"sentences by {SENTENCES.digest} other than was added"),
    (EMBEDDED, "text", other_word, f"sentences by {SENTENCES.digest} other than was added"),
]


@pytest.mark.parametrize(("table", "column", "change", "problem"), PLAIN)
def test_altered_words_and_facts_are_found(library, table, column, change, problem) -> None:
    assert audit(library).problems == ()
    alter(library, table, column, change)
    (found,) = audit(Library.open(library.uri)).problems
    assert found.startswith("video aaaa has ") and found.endswith(problem)


@pytest.mark.parametrize(("table", "column", "change", "problem"), DEEP)
def test_altered_vectors_and_frames_are_found_by_a_deep_check(library, table, column, change, problem) -> None:
    assert audit(library, deep=True).problems == ()
    alter(library, table, column, change)
    opened = Library.open(library.uri)
    assert audit(opened).problems == ()
    (found,) = audit(opened, deep=True).problems
    assert found.startswith("video aaaa has ") and found.endswith(problem)


def test_a_line_of_another_kind_with_other_letters_is_that_of_its_addition(library: Library) -> None:
    rows = library.tables.rows("transcript").sort_by("video_id")["text"].to_pylist()
    alter(library, "transcript", "text", other_word, rows.index("look"))
    assert audit(Library.open(library.uri)).problems == ("video aaaa has speech by m other than was added",)


def test_joined_files_have_the_same_digests(library: Library) -> None:
    before = library.tables.rows("videos", None, ["video_id", VIDEO_DIGESTS]).to_pylist()
    done = maintain(library, keep_s=0, purge=True, deep=True)
    assert (done.before.problems, done.after.problems) == ((), ())
    assert {each.fragments for each in done.after.tables if each.name in ("frames", OWN, "transcript")} == {1}
    assert library.tables.rows("videos", None, ["video_id", VIDEO_DIGESTS]).to_pylist() == before


def test_what_was_altered_goes_on_request_and_the_rest_stays(library: Library) -> None:
    alter(library, OWN, "vector", flipped)
    alter(library, EMBEDDED, "vector", flipped)
    kept = maintain(library, deep=True)
    assert kept.after.audit.altered == (AlteredRows(OWN, ("aaaa",)),)
    gone = maintain(library, discard_broken=True, deep=True)
    assert (gone.removed.altered, gone.after.problems) == ((AlteredRows(OWN, ("aaaa",)),), ())
    assert library.video_ids() == {"bbbb"}
    assert library.additions.counts("sentences") == {"bbbb": 6}


def test_a_video_written_again_has_the_digests_of_its_new_rows(library: Library) -> None:
    video = made("aaaa", FRAMES, seed=5)
    library.writer.discard("aaaa")
    written = library.writer.add_frames({"aaaa": video.frame_rows()[3:]})
    for name, of_video in library.writer.add_frames({"aaaa": video.frame_rows()[:3]}).items():
        written[name].update(of_video)
    assert library.writer.complete([video.video_row()], digests=written) == ()
    assert audit(library, deep=True).problems == ()
    by_reading = empty_library(Path(library.uri).parent / "other", SETTINGS, fingerprint())
    by_reading.writer.add_frames({"aaaa": video.frame_rows()})
    assert by_reading.writer.complete([video.video_row()]) == ()
    digests = [
        each.tables.rows("videos", equal("video_id", "aaaa"), [VIDEO_DIGESTS]).to_pylist()
        for each in (library, by_reading)
    ]
    assert digests[0] == digests[1]


def test_a_library_without_digests_is_not_checked_and_says_so(tmp_path: Path) -> None:
    """As an earlier version made it: the columns are not there, and a newer one does not write them."""
    library = empty_library(tmp_path / "old", SETTINGS, fingerprint())
    videos = library.tables.schema("videos")
    schemas = {
        "videos": (videos, VIDEO_DIGESTS),
        "additions": (ADDITIONS, ADDED_DIGEST),
    }
    for name, (schema, column) in schemas.items():
        library.tables.drop(name)
        library.tables.create(name, schema.remove(schema.get_field_index(column)))
    library = Library.open(library.uri)
    fill(library)
    alter(library, "transcript", "text", other_word)
    found = health(Library.open(library.uri), deep=True)
    assert found.problems == ()
    assert (found.audit.unchecked, found.audit.added.unchecked) == (2, 14)
