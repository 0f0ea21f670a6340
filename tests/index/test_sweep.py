"""A sweep removes what interrupted ingests left and what zombies wrote twice; an audit reports what is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.added_rows import AddedAudit, AddedRows, audit_added, discard_added
from kinodex.index.altered_rows import AlteredRows
from kinodex.index.damaged_pictures import JPEG_END, JPEG_START, damaged_pictures
from kinodex.index.errors import StorageError
from kinodex.index.lease_holders import addition_lease, lease_holders
from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.rows import ChapterRow, SegmentRow
from kinodex.index.store.database import FILE_FORMAT
from kinodex.index.store.filters import equal
from kinodex.index.store.places import table_place
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.schema import SENTENCES_PREFIX, VIDEO_DIGESTS, vectors_table
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import (
    SETTINGS,
    add_stage,
    caption,
    detection,
    fingerprint,
    made,
    other_space,
    spoken,
    unit_vectors,
    vectors_of,
    write,
)
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences
from tests.support.screen_text.lines import Line

VECTORS = vectors_table(fingerprint())


@pytest.mark.slow
def test_leftovers_of_every_table_go(library):
    assert (sweep(library), audit(library).problems) == (0, ())
    kept = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    write(library, kept)
    assert (sweep(library), audit(library).videos) == (0, 1)
    library.writer.add_frames({"frames only": kept.frame_rows()})
    library.writer.add_segments({"segments only": [SegmentRow("", 0, 0.0, 1.0, "shot")]})
    library.writer.add_speech({"lines only": kept.speech()})
    write(library, made("all", 7, seed=2, lines=((0.0, 1.0, "hello"),)), complete=False)
    left = ("all", "frames only", "lines only", "segments only")
    assert audit(library).orphans == left
    assert audit(library).problems == tuple(f"video {name} has rows but is not complete" for name in left)
    assert sweep(library) == 4
    assert audit(library).problems == ()
    assert len(library.vectors("aaaa").frame_no) == len(library.frames("aaaa", range(5))) == 5
    assert [hit.video_id for hit in library.search.lines("speech", "hello")] == ["aaaa"]
    assert sweep(library) == 0


def test_lost_rows_are_reported_and_left(library, tables):
    for video_id in ("aaaa", "bbbb", "cccc"):
        write(library, made(video_id, 5, seed=1))
    tables.delete("frames", equal("video_id", "aaaa") & equal("frame_no", 3))
    tables.delete(VECTORS, equal("video_id", "bbbb"))
    library.writer.add_frames({"bbbb": made("bbbb", 6, seed=1).frame_rows()[5:]})
    checked = audit(library)
    assert (checked.orphans, checked.doubled, checked.broken) == ((), (), ("aaaa", "bbbb"))
    assert checked.problems == (
        "video aaaa has other rows than its own row promises",
        "video bbbb has other rows than its own row promises",
    )
    assert sweep(library) == 0
    assert len(library.videos()) == 3


def test_a_sweep_reads_no_rows_where_their_numbers_are_right(library):
    """Numbers of rows are in the tables' metadata: without any file of rows they can still be compared."""
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 5, seed=1))
    files = [file for name in ("frames", VECTORS) for file in Path(library.uri, f"{name}.lance", "data").iterdir()]
    for file in files:
        file.rename(file.with_suffix(".away"))
    assert sweep(library) == 0
    with pytest.raises(StorageError):
        audit(library)
    for file in files:
        file.with_suffix(".away").rename(file)
    write(library, made("left", 5, seed=2), complete=False)
    assert sweep(library) == 1


# Rows without a complete addition are leftovers, additions without their rows are broken.


def test_leftovers_and_lost_rows(library: Library) -> None:
    other = other_space()
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 4, seed=1, lines=((0.0, 1.0, "subtitles have no model"),)))
    add_stage(library, "captions", "m", {"aaaa": [caption(0, "a"), caption(1, "b")]})
    add_stage(library, "captions", "m", {"bbbb": [caption(0, "c")]}, complete=False)
    add_stage(library, "detections", "m", {"aaaa": [detection(0, "kite", 0.5)]})
    library.additions.add_space(other)
    library.additions.add_vectors({"bbbb": vectors_of(4, 1)}, other)
    library.tables.delete("detections", equal("video_id", "aaaa"))
    found = audit_added(library)
    assert found == AddedAudit(
        leftovers=(AddedRows("captions", "m", ("bbbb",)), AddedRows("vectors", other.digest, ("bbbb",))),
        broken=(AddedRows("detections", "m", ("aaaa",)),),
    )
    assert audit_added(library, ["speech"]) == AddedAudit()
    discard_added(library, (*found.leftovers, *found.broken))
    assert audit_added(library) == AddedAudit()
    assert len(library.captions("aaaa")) == 2


# Values that changed on the disk are found, with their video and table, whatever changed and wherever it lies.

COUNT = 6
SENTENCES = ConceptModel().space
OWN, OTHER = vectors_table(fingerprint()), vectors_table(other_space())
EMBEDDED = vectors_table(SENTENCES, SENTENCES_PREFIX)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    filled = Library.create(str(tmp_path_factory.mktemp("original") / "library"), SETTINGS, fingerprint())
    fill(filled)
    return Path(filled.uri)


@pytest.fixture
def filled(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def fill(filled: Library) -> None:
    """Two videos with all that ingest writes, and all that can be added."""
    ids = ("aaaa", "bbbb")
    for seed, video_id in enumerate(ids):
        video = made(video_id, COUNT, seed, lines=((0.0, 2.0, "a kite over the sea"), (3.0, 4.0, "and a boat")))
        written = filled.writer.add_frames({video_id: video.frame_rows()})
        written["segments"] = filled.writer.add_segments({video_id: [SegmentRow(video_id, 0, 0.0, 6.0, "shot")]})
        written["speech"] = filled.writer.add_speech({video_id: video.speech()})
        assert filled.writer.complete([replace(video.video_row(), segments=1)], digests=written) == ()
    for stage in ("screen_text", "chapters"):
        filled.additions.discard_leftovers(stage, "m")  # which makes the table
    captions = [caption(0, "a kite", unit_vectors(1, 7)[0]), caption(1, "no vector")]
    added = {"captions": captions, "detections": [detection(0, "kite", 0.9)], "speech": [spoken(0, "look")]}
    for stage, rows in {**added, "screen_text": [Line(0.0, 1.0, "EXIT")]}.items():
        add_stage(filled, stage, "m", dict.fromkeys(ids, rows), settings={"batch": 4})
    scene = ChapterRow("", "scene", 0, 0.0, 6.0, 0, 1, "The sea", "A kite flies.", "m")
    filled.chapters.add({video_id: [replace(scene, video_id=video_id)] for video_id in ids})
    assert filled.additions.complete("chapters", "m", dict.fromkeys(ids, 1), {"batch": 4}) == ()
    filled.additions.add_space(other_space())
    filled.additions.add_vectors(dict.fromkeys(ids, vectors_of(COUNT, 1)), other_space())
    assert filled.additions.complete("vectors", other_space().digest, dict.fromkeys(ids, COUNT), {}) == ()
    add_sentences(filled, ConceptModel())


def alter(filled: Library, table: str, column: str, change: Callable[[Any], Any], row: int = 0) -> None:
    """Change a value of the first video's rows, as no writer of the library does."""
    rows = filled.tables.rows(table).sort_by("video_id")
    values = rows[column].to_pylist()
    values[row] = change(values[row])
    kind = rows.schema.field(column).type
    changed = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), pa.array(values, kind))
    place = table_place(filled.uri, table)
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


ALTERED = "other values in {} than were written"
Change = tuple[str, str, Callable[[Any], Any], str]
PLAIN: list[Change] = [
    ("videos", "duration_s", lambda value: value * 2, ALTERED.format("videos")),
    ("videos", "title", str.upper, ALTERED.format("videos")),
    ("videos", "fps", lambda value: None, ALTERED.format("videos")),
    ("videos", VIDEO_DIGESTS, lambda value: value[:-3] + value[-2:], ALTERED.format("videos")),
    ("segments", "end_s", lambda value: 5.0, ALTERED.format("segments")),
    ("speech", "text", other_word, ALTERED.format("speech")),
    ("speech", "start_s", lambda value: -0.0, ALTERED.format("speech")),
    ("speech", "text", other_word, "speech by m other than was added"),
    ("captions", "text", other_word, "captions by m other than was added"),
    ("captions", "vector", flipped, "captions by m other than was added"),
    ("detections", "box", lambda box: [*box[:3], 0.5], "detections by m other than was added"),
    ("screen_text", "text", other_word, "screen_text by m other than was added"),
    ("chapters", "title", str.upper, "chapters by m other than was added"),
    ("additions", "settings", lambda text: text.replace("4", "8"), "captions by m other than was added"),
]
DEEP: list[Change] = [
    ("frames", "time_s", lambda value: 0.5, ALTERED.format("frames")),
    (OWN, "vector", flipped, ALTERED.format(OWN)),
    (OWN, "vector", with_number(6e4), ALTERED.format(OWN)),
    (OWN, "vector", with_number(float("nan")), ALTERED.format(OWN)),
    (OWN, "vector", least_bit, ALTERED.format(OWN)),
    (OTHER, "vector", flipped, f"vectors by {other_space().digest} other than was added"),
    (EMBEDDED, "vector", flipped, f"sentences by {SENTENCES.digest} other than was added"),
    (EMBEDDED, "text", other_word, f"sentences by {SENTENCES.digest} other than was added"),
]


def apart(changes: Sequence[Change]) -> list[list[Change]]:
    """Changes in groups, in each of which no other has the same table or problem."""
    groups: list[list[Change]] = []
    for each in changes:
        free = (group for group in groups if not any(each[0] == other[0] or each[3] == other[3] for other in group))
        if (group := next(free, None)) is None:
            groups.append(group := [])
        group.append(each)
    return groups


@pytest.mark.slow
def test_altered_values_are_found_vectors_and_frames_by_a_deep_check(original: Path, tmp_path: Path) -> None:
    assert audit(Library.open(str(original)), deep=True).problems == ()
    for number, changes in enumerate([*apart(PLAIN), *apart(DEEP)]):
        filled = Library.open(str(shutil.copytree(original, tmp_path / str(number))))
        for table, column, change, problem in changes:
            added = problem.startswith("speech")
            texts = filled.tables.rows(table).sort_by("video_id")["text"].to_pylist() if added else []
            alter(filled, table, column, change, texts.index("look") if added else 0)
        opened, is_deep = Library.open(filled.uri), changes[0] in DEEP
        assert not (is_deep and audit(opened).problems)
        found = {each.removeprefix("video aaaa has ") for each in audit(opened, deep=is_deep).problems}
        assert found == {problem for *_, problem in changes}


@pytest.mark.slow
def test_joined_files_have_the_same_digests(filled: Library) -> None:
    before = filled.tables.rows("videos", None, ["video_id", VIDEO_DIGESTS]).to_pylist()
    done = maintain(filled, keep_s=0, purge=True, deep=True)
    assert (done.before.problems, done.after.problems) == ((), ())
    assert {each.fragments for each in done.after.tables if each.name in ("frames", OWN, "speech")} == {1}
    assert filled.tables.rows("videos", None, ["video_id", VIDEO_DIGESTS]).to_pylist() == before


@pytest.mark.slow
def test_what_was_altered_goes_on_request_and_the_rest_stays(filled: Library) -> None:
    alter(filled, OWN, "vector", flipped)
    alter(filled, EMBEDDED, "vector", flipped)
    kept = maintain(filled, deep=True)
    assert kept.after.audit.altered == (AlteredRows(OWN, ("aaaa",)),)
    gone = maintain(filled, discard_broken=True, deep=True)
    assert (gone.removed.altered, gone.after.problems) == ((AlteredRows(OWN, ("aaaa",)),), ())
    assert filled.video_ids() == {"bbbb"}
    assert filled.additions.counts("sentences") == {"bbbb": 6}


# A picture whose bytes were overwritten on the disk is found, and its video is made again on request.

PICTURE_BYTES = 2_000


def write_pictures(library: Library) -> dict[str, list[bytes]]:
    """Write two videos of three pictures each."""
    random, pictures = np.random.default_rng(0), {}
    for video_id in ("aaaa", "bbbb"):
        video = made(video_id, 3, seed=1)
        pictures[video_id] = [JPEG_START + random.bytes(PICTURE_BYTES) + JPEG_END for _ in range(3)]
        rows = [replace(row, jpeg=jpeg) for row, jpeg in zip(video.frame_rows(), pictures[video_id], strict=True)]
        library.writer.add_frames({video_id: rows})
        library.writer.complete([video.video_row()])
    return pictures


def overwrite(library: Library, picture: bytes, first: int, put: bytes) -> None:
    """Overwrite bytes of a stored picture in the file that holds it."""
    for path in (Path(library.uri) / "frames.lance" / "data").iterdir():
        content = path.read_bytes()
        at = content.find(picture)
        if at >= 0:
            path.write_bytes(content[: at + first] + put + content[at + first + len(put) :])
            return
    raise AssertionError("no file holds the picture as it is")


@pytest.mark.slow
def test_damaged_pictures_are_found_by_a_deep_audit_and_their_videos_go_on_request(library: Library) -> None:
    pictures = write_pictures(library)
    assert damaged_pictures(library) == ()
    overwrite(library, pictures["bbbb"][1], 700, bytes(16))
    found = Library.open(library.uri)
    assert damaged_pictures(found) == ("bbbb",)
    assert audit(found).problems == ()
    assert health(found, deep=True).problems == ("video bbbb has pictures that are not as they were written",)
    kept = maintain(found, deep=True)
    assert (kept.removed.damaged, len(kept.after.problems)) == ((), 1)
    gone = maintain(found, discard_broken=True, deep=True)
    assert (gone.removed.damaged, gone.after.problems) == (("bbbb",), ())
    assert found.video_ids() == {"aaaa"}


# Holders of leases are listed, and known to be dead where their process was on this machine.


def test_holders_by_lease(library: Library) -> None:
    assert lease_holders(library.tables) == ()
    with library.lease("ingest", "a run"), library.lease(addition_lease("captions"), "another"):
        captions, ingest = lease_holders(library.tables)
        assert (captions.lease, captions.owner) == ("add captions", "another")
        assert (ingest.lease, ingest.pid, ingest.is_dead) == ("ingest", os.getpid(), False)
        assert str(ingest).startswith(f"a run on {ingest.host}, process {os.getpid()}, since 20")
    assert lease_holders(library.tables) == ()
