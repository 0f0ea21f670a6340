"""Vectors that are no numbers any more are an error where they would be searched, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.errors import DamagedRows
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.store.database import FILE_FORMAT, table_place
from kinodex.index.store.quiet_lance import lance
from tests.support.libraries.random_library import SETTINGS, caption, empty_library, fingerprint, made, write
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences

FRAMES = 6
ANY = made("any", 1, seed=9).vectors[0].astype(np.float32)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = empty_library(tmp_path / "library", SETTINGS, fingerprint())
    for seed, video_id in enumerate(("aaaa", "bbbb")):
        video = made(video_id, FRAMES, seed, lines=((0.0, 2.0, "a dog in the snow"),))
        write(library, video)
        captions = [caption(0, "a dog", video.vectors[0]), caption(1, "no vector")]
        library.additions.add_captions({video_id: captions}, "m")
        assert library.additions.complete("captions", "m", {video_id: 2}, {}) == ()
    add_sentences(library, ConceptModel())
    return library


def damage(library: Library, table: str, number: float) -> Library:
    """Put a number into the last vector of the first video, in the files; opened anew."""
    rows = library.tables.rows(table).sort_by("video_id")
    column = rows["vector"].combine_chunks()
    at = max(n for n, row in enumerate(rows.to_pylist()) if row["video_id"] == "aaaa" and row["vector"] is not None)
    vectors = column.to_pylist()
    vectors[at] = [np.float16(number), *map(np.float16, vectors[at][1:])]
    field = rows.schema.field("vector")
    rows = rows.set_column(rows.schema.get_field_index("vector"), field, pa.array(vectors, field.type))
    lance.write_dataset(rows, table_place(library.uri, table), mode="overwrite", data_storage_version=FILE_FORMAT)
    return Library.open(library.uri)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_search_that_would_pass_over_a_vector_is_refused(library: Library, number: float) -> None:
    assert len(library.search.frames(ANY, k=20)) == 2 * FRAMES
    damaged = damage(library, library.vectors_table, number)
    for scope in (Scope(), Scope(("aaaa", "bbbb")), Scope(("aaaa",))):
        with pytest.raises(DamagedRows, match=r"a vector of video aaaa .* not as it was written; `kinodex maintain"):
            damaged.search.frames(ANY, scope, k=2)
    assert len(damaged.search.frames(ANY, Scope(("bbbb",)), k=20)) == FRAMES
    assert len(damaged.search.frames(ANY, Scope(("aaaa",), end_s=FRAMES - 1.0), k=20)) == FRAMES - 1
    with pytest.raises(DamagedRows, match="a vector of video aaaa"):
        damaged.in_memory("aaaa")
    assert len(damaged.vectors("bbbb").vectors) == FRAMES


def test_captions_and_sentences_too(library: Library) -> None:
    model = ConceptModel()
    sentences = next(name for name in library.tables.names() if name.startswith("sentences_"))
    damaged = damage(damage(library, "captions", np.nan), sentences, np.nan)
    for search in (
        lambda: damaged.search.captions("dog", ANY),
        lambda: damaged.search.words("dog", meaning=model.meaning("dog")),
        lambda: damaged.caption_vectors("aaaa"),
        lambda: damaged.sentences.vectors("aaaa", model.space),
    ):
        with pytest.raises(DamagedRows, match="a vector of video aaaa"):
            search()
    assert len(damaged.search.captions("dog")) == 2
    assert len(damaged.caption_vectors("bbbb").vectors) == 1


def test_a_video_that_is_written_again_is_searched_again(library: Library) -> None:
    damaged = damage(library, library.vectors_table, np.nan)
    with pytest.raises(DamagedRows):
        damaged.search.frames(ANY, k=20)
    damaged.writer.discard("aaaa")
    assert len(damaged.search.frames(ANY, k=20)) == FRAMES
    write(damaged, made("aaaa", FRAMES, seed=0))
    assert len(damaged.search.frames(ANY, k=20)) == 2 * FRAMES
