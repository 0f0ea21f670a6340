"""The library of an earlier commit (tests/data/libraries) is opened, searched, asked, added to and checked.

A change of a table or column needs a new one: `python -m tests.support.libraries.freeze NAME`.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.held_tables import space_tables
from kinodex.index.store.schema import (
    CLIPS_PREFIX,
    LATE_TABLES,
    SENTENCES_PREFIX,
    clips_schema,
    sentences_schema,
    table_schemas,
)
from tests.support.command import Kinodex
from tests.support.models.stage_models import tiny_film
from tests.world.drawn_space import put_towers

NEWEST = "format-1"


@pytest.fixture
def frozen(root: Path, tmp_path: Path) -> Path:
    """A copy of the library."""
    with tarfile.open(root / "tests" / "data" / "libraries" / f"{NEWEST}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    put_towers(tmp_path / "library")
    return tmp_path / "library"


@pytest.mark.slow  # it is ingested into
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
    answer = json.loads(kinodex("ask", frozen, "Where is a key?", "--video", "film-01", "--json").out)
    assert answer["status"] == "evidence_only" and answer["evidence"]
    film = tiny_film(tmp_path / "boat.mp4", 3, 0)
    ran = kinodex("ingest", film, "--library", frozen)
    assert (ran.code, ran.err) == (0, "")
    said = tmp_path / "captions.jsonl"
    said.write_text(json.dumps({"video": "boat", "start_s": 0, "end_s": 2, "text": "a boat at sea"}) + "\n")
    assert kinodex("import", "captions", said, frozen, "--model", "somebody").code == 0
    assert json.loads(kinodex("search", frozen, "boat at sea", "--in", "captions", "--json").out)[0]["title"] == "boat"
    checked = kinodex("maintain", frozen, "--check", "--deep", "--json")
    assert json.loads(checked.out)["problems"] == [], checked.out


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
