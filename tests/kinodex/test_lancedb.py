"""A library in LanceDB's own hands: its tables are searched by words and pictures, and by its own query builders."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import kinodex
from kinodex.index.errors import NotALibrary, WeightsMissing
from kinodex.index.library import Library
from kinodex.index.spaces.tower_cache import cached_place
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.late import late
from tests.world.drawn_space import FOLDER, drawn_fingerprint

lancedb, tables = late("lancedb"), late("kinodex.lancedb")
WORDS = "a red boat"


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


@pytest.fixture(scope="module")
def frames(library: Path) -> Any:
    database = kinodex.open(library).lancedb()
    (name,) = [each for each in database.list_tables().tables if each.startswith("vectors_")]
    return database.open_table(name)


def near(table: Any, query: Any = WORDS, **settings: Any) -> Any:
    return table.search(query, **settings).distance_type("cosine")


def test_a_query_builder_finds_what_kinodex_finds(opened: Library, frames: Any) -> None:
    """By words, whatever form they are asked for in; what LanceDB makes of a vector and of a filter is its own."""
    hits = Finder(opened).find(Find(query=WORDS, in_="frames", k=5, min_gap_s=0.0))
    cases = {
        "words": near(frames).limit(5).to_list(),
        "words, named as vectors": near(frames, query_type="vector").limit(5).to_list(),
        "some columns": near(frames).select(["video_id", "frame_no", "time_s"]).limit(5).to_list(),
        "pandas": near(frames).limit(5).to_pandas().to_dict("records"),
    }
    for name, rows in cases.items():
        assert [(row["video_id"], row["frame_no"]) for row in rows] == [(hit.video_id, hit.frame_no) for hit in hits], (
            name
        )
        assert rows[0]["_distance"] == pytest.approx(1 - (hits[0].cosine or 0), abs=0.01), name
    own = near(frames).where(f"video_id = '{hits[0].video_id}'", prefilter=True).limit(5).to_list()
    assert {row["video_id"] for row in own} == {hits[0].video_id}


def test_a_picture_and_words_in_lines_and_both_by_their_rank(opened: Library, frames: Any, library: Path) -> None:
    row = frames.search().limit(1).to_list()[0]
    (stored,) = opened.frames(row["video_id"], [row["frame_no"]])
    picture = Image.open(io.BytesIO(stored.jpeg))
    found = near(frames, picture).limit(1).to_arrow()
    assert found["_distance"][0].as_py() < 0.05
    (titled,) = tables.titled(str(library), found).to_pylist()
    assert titled["title"] == opened.video(titled["video_id"]).title
    assert list(titled)[:2] == ["video_id", "title"]

    lines = kinodex.open(library).lancedb().open_table("speech")
    said = next(row["text"] for row in lines.search().limit(1).to_list())
    word = max(said.split(), key=len).strip(".,!?")
    query = tables.terms(word)
    found_lines = lines.search(query, query_type="fts", fts_columns="terms").limit(5).to_list()
    assert any(word in row["text"] for row in found_lines)


def test_captions_by_words_and_vectors_reranked_by_lancedb(tmp_path: Path) -> None:
    from lancedb.rerankers import RRFReranker

    from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, write

    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 12, 0))
    vectors = library.vectors("aaaa").vectors
    texts = ["a red boat at sea", "snow on a roof", "a boat in the harbour", "two dogs"]
    library.additions.add_captions({"aaaa": [caption(n, text, vectors[n]) for n, text in enumerate(texts)]}, "m")
    table = lancedb.connect(library.uri).open_table("captions")
    asked = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="terms")
    rows = asked.vector(vectors[2].astype(np.float32)).text("boat").rerank(RRFReranker()).limit(2).to_list()
    assert [row["text"] for row in rows] == [texts[2], texts[0]] or rows[0]["text"] == texts[2]


@pytest.mark.slow
def test_plain_lancedb_needs_no_more_than_the_import(library: Path) -> None:
    """A process that knows of the library its place alone; the table names its model by digest, without a path."""
    shutil.copytree(FOLDER, cached_place(drawn_fingerprint().digest, "text"), dirs_exist_ok=True)
    script = f"""
import lancedb, kinodex.lancedb
database = lancedb.connect({str(library)!r})
(name,) = [each for each in database.list_tables().tables if each.startswith("vectors_")]
table = database.open_table(name)
print(table.schema.metadata[b"embedding_functions"].decode())
print(table.search({WORDS!r}).distance_type("cosine").limit(1).to_list()[0]["video_id"])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    facts, video_id = ran.stdout.strip().splitlines()
    (function,) = json.loads(facts)
    opened = Library.open(str(library))
    model = {"space": opened.fingerprint.digest, "of": "frames"}
    assert function == {"name": "kinodex", "model": model, "source_column": "jpeg", "vector_column": "vector"}
    assert video_id == Finder(opened).find(Find(query=WORDS, in_="frames", k=1))[0].video_id


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(NotALibrary, match=r"LanceDB's own cloud.* folder, or under s3://"):
        kinodex.open("db://films")
    with pytest.raises(WeightsMissing, match=r"kinodex\.open\(LIBRARY\)\.lancedb\(\)"):
        tables.ModelOfTable.create(space="0" * 12).compute_query_embeddings("a dog")
