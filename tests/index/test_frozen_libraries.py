"""Libraries of earlier commits (tests/data/libraries): each is opened, upgraded, searched, asked, added to, checked.

A change of a table or column needs a new one: `python -m tests.support.libraries.freeze NAME`.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.errors import LibraryBusy, LibraryDamaged
from kinodex.index.library import Library
from kinodex.index.store.database import Tables, space_tables
from kinodex.index.store.schema import (
    CLIPS_PREFIX,
    FORMAT_VERSION,
    LATE_TABLES,
    SENTENCES_PREFIX,
    clips_schema,
    read_stored_heading,
    sentences_schema,
    table_schemas,
)
from kinodex.index.upgrade import upgrade
from tests.support.command import Kinodex
from tests.support.models.stage_models import tiny_film

OLDEST, OLDER = "format-1-at-7c22ce07", "format-2-at-b647d471"
OLD, NEWEST = "format-2-at-a6306e5c", "format-2-at-140b6ceb"
STEPS = {OLDEST: 15, OLDER: 8, OLD: 7}


@pytest.fixture
def frozen(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Path:
    """A copy of the library of a name."""
    with tarfile.open(root / "tests" / "data" / "libraries" / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "library"


def files(folder: Path) -> dict[str, str]:
    """The files of a library by their content."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.slow  # each is ingested into
@pytest.mark.parametrize("frozen", STEPS, indirect=True)
def test_a_library_of_an_earlier_kinodex_is_upgraded_and_used(
    kinodex: Kinodex, frozen: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["frozen"]
    before = files(frozen)
    refused = kinodex("info", frozen)
    if name == OLDEST:
        assert "has format 1, and this kinodex reads 2; `kinodex upgrade " in refused.error_line
    else:
        assert refused.code == 0, refused.err
    planned = json.loads(kinodex("upgrade", frozen, "--dry-run", "--json").out)
    assert len(planned["steps"]) == STEPS[name] and planned["seconds"] > 0
    assert files(frozen) == before, "a refusal and a dry run write nothing"
    done = json.loads(kinodex("upgrade", frozen, "--json").out)
    assert (done["steps"], done["format_version"]) == (planned["steps"], FORMAT_VERSION)
    kept = {each: content for each, content in before.items() if "/data/" in each}
    assert kept.items() <= files(frozen).items(), "no row is written again"
    assert "nothing is to be done" in kinodex("upgrade", frozen).out

    assert_used(kinodex, frozen, tmp_path)


@pytest.mark.slow  # as above
@pytest.mark.parametrize("frozen", [NEWEST], indirect=True)
def test_a_library_with_columns_and_a_table_of_a_later_kinodex_is_used(
    kinodex: Kinodex, frozen: Path, tmp_path: Path
) -> None:
    """Within a number of the format changes only add, so that this kinodex reads and writes what a later one made."""
    tables = Tables(str(frozen))
    for name in tables.names():
        tables[name].add_columns(pa.field("of_tomorrow", pa.list_(pa.float32())))
    tables.create("tomorrow", pa.schema([pa.field("video_id", pa.string())]))
    assert_used(kinodex, frozen, tmp_path)
    for name in Tables(str(frozen)).names():
        assert name == "tomorrow" or "of_tomorrow" in Tables(str(frozen)).schema(name).names, name


def assert_used(kinodex: Kinodex, frozen: Path, tmp_path: Path) -> None:
    """Search, ask, ingest, import captions, change the space, and check."""
    assert kinodex("info", frozen, "--json").code == 0
    assert kinodex("info", frozen, "--runs").code == 0
    hits = json.loads(kinodex("search", frozen, "a brown key in the meadow", "--json").out)
    assert {hit["title"] for hit in hits} == {"film-01"}
    said = json.loads(kinodex("search", frozen, "the", "--in", "speech", "--json").out)
    assert {hit["title"] for hit in said} == {"film-01"}, "its words are indexed"
    answer = json.loads(kinodex("ask", frozen, "What colour is the key?", "--video", "film-01", "--json").out)
    assert answer["status"] == "answered"
    film = tiny_film(tmp_path / "boat.mp4", 3, 0)
    ran = kinodex("ingest", film, "--library", frozen, "--anyway")
    assert (ran.code, ran.err) == (0, "")
    said = tmp_path / "captions.jsonl"
    said.write_text(json.dumps({"video": "boat", "start_s": 0, "end_s": 2, "text": "a boat at sea"}) + "\n")
    assert kinodex("import", "captions", said, frozen, "--model", "somebody").code == 0
    assert json.loads(kinodex("search", frozen, "boat at sea", "--in", "captions", "--json").out)[0]["title"] == "boat"
    checked = kinodex("maintain", frozen, "--check", "--deep", "--json")
    assert json.loads(checked.out)["problems"] == [], checked.out


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [OLDEST], indirect=True)
def test_an_upgrade_that_was_interrupted_goes_on(frozen: Path) -> None:
    """Stopped before its second step each time, it does each of them once, in their order; the format is the last."""
    leases, steps = "makes the table leases", list(upgrade(str(frozen), dry_run=True).steps)
    assert len(steps) == STEPS[OLDEST] and "format" in steps[-1]
    steps.remove(leases)  # that comes first, beside the step of the first run
    done: list[str] = []

    def stop_at_second(what: str) -> None:
        done.append(what)
        if len(done) == 2:
            raise KeyboardInterrupt

    for step in steps:
        done.clear()
        with suppress(KeyboardInterrupt):
            upgrade(str(frozen), on_step=stop_at_second)
        assert next(each for each in done if each != leases) == step
    assert upgrade(str(frozen), dry_run=True).steps == ()
    assert Library.open(str(frozen)).info().videos == 1


@pytest.mark.parametrize("frozen", [OLDER], indirect=True)
def test_an_upgrade_waits_for_no_run(frozen: Path) -> None:
    with Library.open(str(frozen)).lease("ingest", "an ingest"), pytest.raises(LibraryBusy):
        upgrade(str(frozen))
    assert len(upgrade(str(frozen), dry_run=True).steps) == STEPS[OLDER]


@pytest.mark.parametrize("frozen", [OLDEST], indirect=True)
def test_what_no_kinodex_wrote_is_not_thrown_away(frozen: Path) -> None:
    tables = Tables(str(frozen))
    row = {"video_id": "a", "time_s": 1.0, "label": "key", "score": 0.5, "box": [0.0] * 4, "model": "mine"}
    tables.append("detections", pa.Table.from_pylist([row], schema=tables.schema("detections")))
    with pytest.raises(LibraryDamaged, match="which no kinodex wrote in its format; nothing was changed"):
        upgrade(str(frozen))
    assert tables.count("detections") == 1
    assert read_stored_heading(Tables(str(frozen)).schema("videos"), "").format_version == 1


@pytest.mark.parametrize("frozen", [NEWEST], indirect=True)
def test_the_newest_frozen_library_has_every_table_and_column_of_today(frozen: Path) -> None:
    library = Library.open(str(frozen))
    ((sentences, space),) = space_tables(library.tables, SENTENCES_PREFIX).items()
    ((clips, video_text),) = space_tables(library.tables, CLIPS_PREFIX).items()
    wanted = {
        **table_schemas(library.settings, library.fingerprint),
        **LATE_TABLES,
        sentences: sentences_schema(space, {}),
        clips: clips_schema(video_text),
    }
    for name, schema in wanted.items():
        held = library.tables.schema(name)
        own = [field for field in held if field.name in schema.names] if name == "metadata" else list(held)
        assert own == list(schema), f"{name} was changed: freeze a library (see the top of this file)"
        assert name == "failures" or library.tables.count(name) > 0, f"{name} has rows"
