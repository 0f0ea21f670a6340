"""A database opened at its place: its tables are read and written, and its errors are one line each."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.errors import KinodexError
from kinodex.index.errors import (
    LibraryDamaged,
    NewerLibrary,
    NotALibrary,
    QueryError,
    SpaceMismatch,
    StorageError,
    StorageFull,
)
from kinodex.index.library import Library
from kinodex.index.maintain import health
from kinodex.index.rows import Scope
from kinodex.index.store.database import COMMIT_ATTEMPTS, Tables, retry_on_conflict
from kinodex.index.store.filters import equal, other_than
from kinodex.index.store.indexes import Thresholds, refresh
from kinodex.index.store.memory import free_memory_bytes, index_cache_bytes
from kinodex.index.store.newest_state import MOST_STEPS, is_another, newest_state, newest_version, state_mark
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.schema import FORMAT_KEY, FORMAT_VERSION, table_schemas
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.sweep import audit
from tests.support.late import late
from tests.support.libraries.random_library import (
    OTHER_DIM,
    SETTINGS,
    MadeVideo,
    fingerprint,
    found,
    made,
    no_room,
    other_space,
    vectors_of,
    write,
)

lancedb = late("lancedb")


@pytest.mark.slow
def test_somebody_elses_database(tmp_path):
    lancedb.connect(tmp_path / "theirs").create_table("videos", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="did not make"):
        Library.open(str(tmp_path / "theirs"))
    lancedb.connect(tmp_path / "wine").create_table("bottles", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="bottles"):
        Library.create(str(tmp_path / "wine"), SETTINGS, fingerprint())


def test_a_later_format_is_refused(tmp_path):
    schema = table_schemas(SETTINGS, fingerprint())["videos"]
    marked = schema.with_metadata(schema.metadata | {FORMAT_KEY: b"7"})
    lancedb.connect(tmp_path / "newer").create_table("videos", schema=marked)
    with pytest.raises(NewerLibrary, match=f"has format 7, and this kinodex reads {FORMAT_VERSION}; update"):
        Library.open(str(tmp_path / "newer"))


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("what", ["frames.lance/data/*.lance", "towers/*/tower.json"])
def test_a_pipe_in_a_library_is_not_waited_for(library: Library, what: str) -> None:
    write(library, made("aaaa", 3, seed=1))
    Library.open(library.uri)
    tower = Path(library.uri, "towers", "0123", "tower.json")
    tower.parent.mkdir(parents=True)
    tower.touch()
    for file in Path(library.uri).glob(what):
        file.unlink()
        os.mkfifo(file)
    with pytest.raises(LibraryDamaged, match="is a pipe or a device, and no file"):
        Library.open(library.uri)


@pytest.mark.parametrize("harm", [_cut, Path.unlink])
@pytest.mark.parametrize("what", ["data/*.lance", "_versions/*.manifest"])
def test_what_is_cut_off_or_gone_is_said_with_a_way_out(library, harm, what):
    write(library, made("aaaa", 3, seed=1))
    for file in Path(library.uri, "frames.lance").glob(what):
        harm(file)
    damaged = Library.open(library.uri)
    with pytest.raises(StorageError, match=r"missing or cut off \(.*restore it from a copy") as error:
        damaged.frames("aaaa", [1])
    assert ".rs:" not in str(error.value)
    assert len(damaged.vectors("aaaa").frame_no) == 3
    shutil.rmtree(Path(library.uri) / "speech.lance")
    with pytest.raises(StorageError, match=f"cannot use {library.uri}: .*missing or cut off"):
        damaged.speech("aaaa")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["videos", "leases", "frames"])
def test_a_bit_of_a_files_own_description_that_is_another_is_said_or_changes_nothing(library, name):
    """The altered values themselves are found by their digests."""
    write(library, made("aaaa", 3, seed=1, lines=((0.0, 1.0, "hello"),)))
    with library.lease("ingest", "somebody"):
        pass
    table = Path(library.uri, f"{name}.lance")
    files = [*table.glob("data/*"), min(table.glob("_versions/*"))]  # the newest comes first by name
    states = {file: file.read_bytes() for file in files}
    said = 0
    for file, content in states.items():
        for position in range(max(len(content) - 1500, 0), len(content), 601):
            file.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
            try:
                opened = Library.open(library.uri)
                opened.tables.rows(name)
                health(opened)
                opened.info()
                opened.speech("aaaa")
            except KinodexError as error:
                said += "restore it from a copy" in str(error)
        file.write_bytes(content)
    assert said


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_file_that_is_cut_short_is_not_committed(tmp_path: Path):
    """By whatever writes; Lance's usual way to local files commits some that lack their last bytes."""
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    tables = library.tables
    rows = [source(f"/films/{number:06}.mp4", f"{number:032}") for number in range(500)]
    for _ in range(2):
        tables.append("sources", rows)
    data = (tmp_path / "library" / "sources.lance" / "data").iterdir()
    size_bytes = min(file.stat().st_size for file in data)
    for most_bytes, write_rows in (
        (size_bytes - 20, lambda: tables.append("sources", rows)),
        (size_bytes // 2, lambda: tables.upsert("sources", ["uri"], rows[:250])),
        (900, lambda: tables.update("sources", equal("uri", "/films/000000.mp4"), {"stamp": "other"})),
        (20, lambda: tables.delete("sources", equal("uri", "/films/000000.mp4"))),
        (1000, lambda: tables.to_write("sources").create_scalar_index("uri", "BTREE")),
        (1000, lambda: tables.to_write("sources").optimize.compact_files()),
    ):
        with no_room(most_bytes), storage_errors(library.uri), pytest.raises((StorageFull, OSError)):
            write_rows()
        assert Library.open(library.uri).tables.rows("sources", None, ["uri", "stamp"]).num_rows == 1000
        assert tables.count("sources", equal("uri", "/films/000000.mp4")) == 2
    tables.append("sources", rows)
    assert tables.count("sources") == 1500


def source(uri: str, video_id: str) -> dict[str, object]:
    return {"uri": uri, "video_id": video_id, "size_bytes": None, "stamp": "", "seen_at": 0}


def test_rows_by_their_keys(tables: Tables) -> None:
    tables.append("sources", [source("a", "1"), source("b", "2")])
    tables.upsert("sources", ["uri"], [source("b", "3"), source("c", "4")])
    tables.insert("sources", ["uri"], [source("a", "9"), source("d", "5")])
    rows = tables.rows("sources", None, ["uri", "video_id"]).sort_by("uri").to_pylist()
    assert [(row["uri"], row["video_id"]) for row in rows] == [("a", "1"), ("b", "3"), ("c", "4"), ("d", "5")]
    assert tables.update("sources", equal("uri", "a"), {"video_id": "7"}) == 1
    assert tables.count("sources", equal("video_id", "7")) == 1
    batches = list(tables.batches("sources", other_than("uri", "a"), ["uri"], row_ids=True))
    assert sorted(uri for batch in batches for uri in batch["uri"].to_pylist()) == ["b", "c", "d"]
    assert len({place for batch in batches for place in batch["_rowid"].to_pylist()}) == 3
    tables.delete("sources", equal("uri", "a") | equal("uri", "b"))
    assert tables.count("sources") == 2
    before = tables.version("sources")
    tables.append("sources", [])
    tables.upsert("sources", ["uri"], [])
    tables.delete("sources", equal("uri", "nothing"))
    assert tables.version("sources") == before, "nothing is committed where there is nothing to write"
    assert not tables.has("nothing")


def test_only_a_conflict_is_retried() -> None:
    attempts: list[str] = []

    def conflict_twice() -> int:
        attempts.append("conflict")
        if len(attempts) < 3:
            raise RuntimeError("lance error: Retryable commit conflict for version 5")
        return len(attempts)

    def fail() -> None:
        attempts.append("failure")
        raise RuntimeError("another error")

    assert retry_on_conflict(conflict_twice) == 3 < COMMIT_ATTEMPTS
    with pytest.raises(RuntimeError, match="another error"):
        retry_on_conflict(fail)
    assert attempts.count("failure") == 1


SOON = Thresholds(scalar_rows=50, vector_rows=100, stale_rows=5, stale_lines=1)
WORDS = tuple((float(number), number + 1.0, f"line {number} of the red boat") for number in range(9))


def films() -> list[MadeVideo]:
    return [made(f"{number:04d}", 60, seed=number, lines=WORDS) for number in range(3)]


def test_lancedb_opens_searches_and_writes_what_is_written_here(library: Library) -> None:
    videos = films()
    for video in videos:
        write(library, video)
    refresh(library.tables, SOON)
    database = lancedb.connect(library.uri)
    assert sorted(database.list_tables().tables) == library.tables.names()
    theirs: Any = database.open_table(library.vectors_table)
    query = videos[1].vectors[7].astype(np.float32)
    nearest = theirs.search(query, vector_column_name="vector").distance_type("cosine").refine_factor(5).limit(1)
    assert [(row["video_id"], row["frame_no"]) for row in nearest.to_list()] == [("0001", 7)]
    assert {each.name: each.num_unindexed_rows for each in theirs.list_indices()} == {"by_vector": 0, "by_video_id": 0}
    lines = database.open_table("speech")
    for words, count in (("boat", 27), ('"red boat"', 27), ('"boat red"', 0), ('"line 4"', 3)):
        assert len(lines.search(words, query_type="fts", fts_columns="terms").limit(99).to_list()) == count
    lines.add(lines.search().where("video_id = '0002'").to_arrow().slice(0, 1))
    lines.optimize()
    assert library.tables.count("speech") == 28
    assert library.search.lines("speech", '"line 4"', Scope(("0002",)))[0].time_s == 4.0


def test_a_library_that_lancedb_wrote_is_read_searched_and_written_on(tmp_path: Path) -> None:
    """As all libraries were before kinodex wrote Lance tables itself."""
    source = Library.create(str(tmp_path / "source"), SETTINGS, fingerprint())
    videos = films()
    write(source, videos[1])
    database = lancedb.connect(tmp_path / "old")
    for name, schema in table_schemas(SETTINGS, fingerprint()).items():
        known = {key: value for key, value in (schema.metadata or {}).items() if key != b"embedding_functions"}
        table = database.create_table(name, schema=schema.with_metadata(known))  # such libraries are older than that
        table.add(source.tables.rows(name))
        if name in ("speech", "captions"):
            as_is: dict[str, Any] = dict.fromkeys(("lower_case", "ascii_folding", "stem", "remove_stop_words"), False)
            words = lancedb.index.FTS(with_position=True, base_tokenizer="whitespace", **as_is)
            table.create_index("terms", config=words, name="by_terms")
        if name == source.vectors_table:
            table.create_index("vector", config=lancedb.index.HnswSq(distance_type="cosine"), name="by_vector")
    old = Library.open(str(tmp_path / "old"))
    for new in (videos[0], videos[2]):
        query = videos[1].vectors[7].astype(np.float32)
        assert found(old.search.frames(query, k=1)) == [("0001", 7)]
        assert old.search.lines("speech", '"line 4"', Scope(("0001",)))[0].time_s == 4.0
        assert old.frames("0001", [3])[0].jpeg == b"jpeg 0001 3"
        write(old, new)
        refresh(old.tables, SOON)
    assert found(old.search.frames(videos[2].vectors[9].astype(np.float32), k=1)) == [("0002", 9)]
    assert [index.num_rows_indexed for index in old.tables["speech"].describe_indices()] == [27]
    assert audit(old).problems == ()


OTHER = other_space()
STORED = {"aaaa": vectors_of(40, seed=10), "bbbb": vectors_of(40, seed=11), "cccc": vectors_of(40, seed=12)}


@pytest.fixture
def two_spaces(tmp_path) -> Library:
    two_spaces = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(STORED):
        write(two_spaces, made(video_id, 40, seed=number))
    two_spaces.additions.add_space(OTHER)
    two_spaces.additions.add_space(OTHER)
    return two_spaces


def add(two_spaces: Library, *video_ids: str) -> None:
    two_spaces.additions.add_vectors({video_id: STORED[video_id] for video_id in video_ids}, OTHER)
    assert two_spaces.additions.complete("vectors", OTHER.digest, dict.fromkeys(video_ids, 40), {}) == ()


def test_spaces_are_known_by_name_and_digest(two_spaces):
    assert two_spaces.spaces() == Library.open(two_spaces.uri).spaces() == (fingerprint(), OTHER)
    add(two_spaces, "aaaa")
    for name in (OTHER.name, OTHER.digest):
        np.testing.assert_array_equal(two_spaces.vectors("aaaa", name).vectors, STORED["aaaa"].vectors)
    own = two_spaces.vectors("aaaa").vectors
    np.testing.assert_array_equal(two_spaces.vectors("aaaa", fingerprint().name).vectors, own)
    assert own.shape != (40, OTHER_DIM)
    two_spaces.additions.add_space(other_space(weights="c" * 64))
    with pytest.raises(SpaceMismatch, match="give a digest"):
        two_spaces.vectors("aaaa", OTHER.name)
    assert len(two_spaces.vectors("aaaa", OTHER.digest).frame_no) == 40
    with pytest.raises(SpaceMismatch, match=r"got space nowhere.*other \(.*add vectors"):
        two_spaces.search.frames(np.ones(OTHER_DIM), space="nowhere")


def test_only_videos_with_vectors_there_are_searched(two_spaces):
    add(two_spaces, "aaaa", "bbbb")
    two_spaces.additions.add_vectors({"cccc": STORED["cccc"]}, OTHER)
    query = STORED["cccc"].vectors[7].astype(np.float32)
    hits = two_spaces.search.frames(query, k=80, space=OTHER.digest)
    assert {hit.video_id for hit in hits} == {"aaaa", "bbbb"}
    assert len(hits) == 80
    for read in (
        lambda: two_spaces.vectors("cccc", OTHER.digest),
        lambda: two_spaces.search.frames(query, Scope(("aaaa", "cccc")), space=OTHER.digest),
    ):
        with pytest.raises(SpaceMismatch, match="film cccc has no vectors yet"):
            read()
    with pytest.raises(QueryError, match=r"shape \(24,\)"):
        two_spaces.search.frames(query)
    two_spaces.additions.complete("vectors", OTHER.digest, {"cccc": 40}, {})
    assert found(two_spaces.search.frames(query, k=1, space=OTHER.digest)) == [("cccc", 7)]


# Free memory, from files as Linux and containers have them, and without them.

GIB = 2**30


def test_what_is_available_counts_and_no_more_than_the_container_has_left(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text(f"MemTotal: 99 kB\nMemAvailable:   {8 * GIB // 1024} kB\n")
    assert free_memory_bytes(meminfo, cgroup) == 8 * GIB
    cgroup.mkdir()
    (cgroup / "memory.max").write_text("max\n")
    (cgroup / "memory.stat").write_text(f"anon {GIB}\nfile {5 * GIB}\n")
    assert free_memory_bytes(meminfo, cgroup) == 8 * GIB
    (cgroup / "memory.max").write_text(f"{4 * GIB}\n")
    assert free_memory_bytes(meminfo, cgroup) == 3 * GIB
    (cgroup / "memory.max").write_text(f"{GIB // 2}\n")
    assert free_memory_bytes(meminfo, cgroup) == 0
    assert 0 < free_memory_bytes(tmp_path / "none", tmp_path / "none") < 2**50, "half of all where nobody says"
    assert (index_cache_bytes(64 * GIB), index_cache_bytes(GIB)) == (32 * GIB, 6 * GIB)  # no less than Lance's own


# The newest state of a table by the names of its files: the one that Lance finds, or left to Lance.


@pytest.fixture
def table(tmp_path: Path) -> str:
    lance.write_dataset(pa.table({"n": [0]}), tmp_path / "t.lance", data_storage_version="2.2")
    return str(tmp_path / "t.lance")


def append(table: str, times: int = 1) -> None:
    for _ in range(times):
        lance.write_dataset(pa.table({"n": [1]}), table, mode="append")


@pytest.mark.parametrize("later", [0, 1, -1])
def test_a_table_that_was_made_again_is_another(table: str, later: int) -> None:
    append(table, 2)
    known = lance.dataset(table)
    mark = state_mark(table, known.version)
    shutil.rmtree(table)
    lance.write_dataset(pa.table({"n": [9]}), table, data_storage_version="2.2")
    append(table, 2 + later)
    newest = newest_state(known, table, mark)
    assert newest.to_table()["n"].to_pylist() == [9] + [1] * (2 + later)
    assert is_another(known, newest, table, mark)
    assert is_another(known, newest, None, None) is (later <= 0), "in an object store"
    assert not is_another(newest, newest_state(newest, table, state_mark(table, newest.version)), table, None)


def test_a_list_of_files_cut_off_anywhere_is_said(library):
    """Lance panics over some of these lengths, and reports others."""
    write(library, made("aaaa", 3, seed=1))
    states = {file: file.read_bytes() for file in Path(library.uri, "frames.lance", "_versions").iterdir()}
    for missing in (1, 2, 3, 4, 8, 16, 17, 100, 500):
        for file, content in states.items():
            file.write_bytes(content[:-missing])
        with pytest.raises(StorageError, match="cannot use"):
            Tables(library.uri).count("frames")


def test_with_small_caches_the_same_is_read(tables: Tables) -> None:
    tables.append("sources", [source("a", "1")])
    large: Any = tables["sources"].session()
    tables.limit_caches()
    tables.append("sources", [source("b", "2")])
    assert tables.count("sources") == 2
    small: Any = tables["sources"].session()
    assert small.is_same_as(tables["videos"].session())
    assert not small.is_same_as(large)


def test_a_space_whose_making_was_interrupted_stops_nobody(two_spaces):
    (Path(two_spaces.uri) / "vectors_half_0123456789ab.lance" / "data").mkdir(parents=True)
    opened = Library.open(two_spaces.uri)
    assert opened.spaces() == (fingerprint(), OTHER)
    refresh(opened.tables)
    assert audit(opened).problems == ()


def test_an_index_there_finds_the_same_and_a_discarded_video_loses_its_vectors(two_spaces):
    add(two_spaces, *STORED)
    query = STORED["bbbb"].vectors[3].astype(np.float32)
    before = found(two_spaces.search.frames(query, k=9, min_gap_s=2.0, space=OTHER.digest))
    refresh(two_spaces.tables, Thresholds(scalar_rows=50, vector_rows=100))
    assert found(two_spaces.search.frames(query, k=9, min_gap_s=2.0, space=OTHER.digest)) == before
    assert before[0] == ("bbbb", 3)
    two_spaces.writer.discard("bbbb")
    assert {hit.video_id for hit in two_spaces.search.frames(query, k=99, space=OTHER.digest)} == {"aaaa", "cccc"}
    write(two_spaces, made("bbbb", 40, seed=1))
    assert [row.video_id for row in two_spaces.additions.pending("vectors", OTHER.digest)] == ["bbbb"]
    add(two_spaces, "bbbb")
    assert found(two_spaces.search.frames(query, k=1, space=OTHER.digest)) == [("bbbb", 3)]


def test_it_is_the_one_that_lance_finds_and_lance_lists_them_where_the_known_one_is_far_behind(table: str) -> None:
    known = lance.dataset(table)
    assert newest_version(table, known.version) == known.version
    assert newest_state(known, table, state_mark(table, known.version)).version == known.version
    append(table, 2)
    assert newest_version(table, known.version) == lance.dataset(table).version == known.version + 2
    newest = newest_state(known, table, state_mark(table, known.version))
    assert (newest.version, newest.count_rows(), known.count_rows()) == (known.version + 2, 3, 1)
    newest.insert(pa.table({"n": [2]}))
    lance.dataset(table).cleanup_old_versions(timedelta(microseconds=1))
    assert newest_version(table, known.version) is None
    assert newest_state(known, table, state_mark(table, known.version)).count_rows() == 4
    assert newest_state(known, None, None).count_rows() == 4
    (Path(table) / "_versions").rename(Path(table) / "kept")
    (Path(table) / "_versions").mkdir()
    for version in range(1, MOST_STEPS + 3):
        (Path(table) / "_versions" / f"{2**64 - 1 - version:020}.manifest").touch()
    assert newest_version(table, 1) is None
    assert newest_version(table, 3) == MOST_STEPS + 2


def test_names_of_another_kind_are_left_to_lance(tmp_path: Path) -> None:
    old = str(tmp_path / "old.lance")
    lance.write_dataset(pa.table({"n": [0]}), old, enable_v2_manifest_paths=False)
    known = lance.dataset(old)
    append(old)
    assert newest_version(old, known.version) is None
    assert newest_state(known, old, None).count_rows() == 2
