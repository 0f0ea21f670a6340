"""A library for LanceDB's own users: its connection, and the function that embeds what is looked for in its tables.

    import lancedb
    import kinodex.lancedb

    table = lancedb.connect("mine").open_table("vectors_...")
    table.search("a dog on a beach").limit(3).to_pandas()

Tables name their model by its digest. It is looked for in the libraries that `connect` opened in this process, or that
are named to `register`; else among the towers that this machine exported or fetched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

try:
    import lancedb
    from lancedb.embeddings import EmbeddingFunction
    from lancedb.embeddings import register as registered
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed; `pip install 'kinodex[lancedb]'` brings it", name=error.name
    ) from error
from lancedb.db import DBConnection

from kinodex.index.errors import UnknownWords, WeightsMissing
from kinodex.index.library import Library
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.tower_cache import cached_place, is_whole
from kinodex.index.store.carried_towers import shipped_tower
from kinodex.index.store.held_tables import space_tables
from kinodex.index.store.schema import CLIPS_PREFIX, SENTENCES_PREFIX, VECTORS_PREFIX
from kinodex.index.terms import query_terms

_libraries: dict[str, str] = {}
"""The place of a library with vectors of each model, by the model's digest."""


def connect(uri: str) -> DBConnection:
    """Connect LanceDB to a library, whose models then embed what is looked for in its tables."""
    register(uri)
    return lancedb.connect(uri)


def register(uri: str) -> None:
    """Have the models of the library at `uri` found by tables that name them."""
    tables = Library.open(uri).tables
    for prefix in (VECTORS_PREFIX, SENTENCES_PREFIX, CLIPS_PREFIX):
        _libraries.update({space.digest: uri for space in space_tables(tables, prefix).values()})


def terms(query: str) -> str:
    """Return the words of a query as the column `terms` of a table of lines has them.

    >>> table.search(kinodex.lancedb.terms("L'École"), query_type="fts", fts_columns="terms")
    """
    return " ".join(query_terms(query))


def titled(uri: str, rows: pa.Table) -> pa.Table:
    """Put the titles of a library's videos beside the ids in rows that LanceDB found (`.to_arrow()`)."""
    videos = Library.open(uri).video_columns(["video_id", "title"])
    titles = dict(zip(videos["video_id"].to_pylist(), videos["title"].to_pylist(), strict=True))
    found = [titles.get(video_id) for video_id in rows["video_id"].to_pylist()]
    return rows.add_column(rows.schema.get_field_index("video_id") + 1, "title", pa.array(found, pa.string()))


@registered("kinodex")  # type: ignore[no-untyped-call]
class ModelOfTable(EmbeddingFunction):
    """Embeds words and pictures as the model did that made a table's vectors: `of` frames, clips or sentences."""

    space: str
    """The model's digest."""
    of: str = "frames"
    max_retries: int = 0
    """A model that is missing is missing the next time too."""

    def ndims(self) -> int:
        """Return the dimensions of its vectors."""
        return len(self.compute_query_embeddings("")[0])

    def compute_query_embeddings(self, *given: Any, **_: Any) -> list[Any]:
        """Embed a text, or a picture (PIL, or RGB as an array)."""
        (query,) = given
        words, picture = (query, None) if isinstance(query, str) else ("", query)
        return [np.asarray(self._embedded(words, picture), np.float32)]

    def compute_source_embeddings(self, *given: Any, **_: Any) -> list[Any]:
        """Embed what rows are made of: JPEGs, or texts of sentences."""
        (sources,) = given
        listed = sources.to_pylist() if isinstance(sources, pa.Array | pa.ChunkedArray) else sources
        return [vector for each in listed for vector in self.compute_query_embeddings(each)]

    def _embedded(self, words: str, picture: Any) -> Any:
        uri = _libraries.get(self.space)
        if uri is None:
            return self._by_tower(words, picture)
        library = Library.open(uri)
        if self.of == "sentences":
            model = library.sentences.load(self.space)
            assert model is not None
            return model.embed_texts([words])[0]
        if self.of == "clips":
            from kinodex.jobs.clip_models import ClipQueries, clip_spaces
            from kinodex.jobs.pictures import as_jpeg
            from kinodex.search.pictures import upright_pixels

            (space,) = (each for each in clip_spaces(library) if each.digest == self.space)
            jpeg = None if picture is None else as_jpeg(upright_pixels(picture))
            return ClipQueries(library, space).embed(words, jpeg)
        from kinodex.search.finder import Finder

        return Finder(library, self.space).embed(words, picture)

    def _by_tower(self, words: str, picture: Any) -> Any:
        """Embed words by a text tower of this machine, where no library is known that has the model."""
        folder = shipped_tower(self.space, "text") or cached_place(self.space, "text")
        if picture is not None or self.of == "clips" or not is_whole(folder, "text"):
            raise WeightsMissing(
                f"the model {self.space} of this table is not known here; name the library that has it: "
                "kinodex.open(LIBRARY).lancedb(), or kinodex.lancedb.register(LIBRARY)"
            )
        tower = TextTower.open(folder)
        vector = tower.embed_text([words])[0]
        if not vector.any():
            raise UnknownWords.of(tower.name, words)
        return vector
