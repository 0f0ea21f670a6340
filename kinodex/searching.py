"""A search of a library by words, picture or vector: the one table that is named, or all together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kinodex.arguments import Table, usage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from index.library_reader import LibraryReader
    from index.rows import Hit, Scope


def find_hits(
    reader: LibraryReader,
    query: str | Image | NDArray[Any],
    embed: Callable[[str | Image | NDArray[Any]], NDArray[np.floating[Any]]],
    scope: Scope,
    k: int,
    table: Table,
    min_gap_s: float,
    space: str | None,
) -> list[Hit]:
    """Find the hits of `Library.search`; `embed` gives the vector of a query in `space`."""
    if not isinstance(query, str):
        if table not in ("all", "frames"):
            raise usage_error(f"got a picture or vector and table={table!r}; they are looked for in frames")
        return reader.search.frames(embed(query), scope, k=k, min_gap_s=min_gap_s, space=space)
    if not query.strip():
        raise usage_error("got an empty query; give some words to look for")
    if table == "words":
        meaning = reader.sentences.meaning(query)
        return reader.search.words(query, scope, k=k, min_gap_s=min_gap_s, meaning=meaning)
    if table == "transcript":
        return reader.search.transcript(query, scope, k=k, min_gap_s=min_gap_s)
    if table == "text":
        return reader.search.screen_text(query, scope, k=k, min_gap_s=min_gap_s)
    if table == "captions":
        # Captions are embedded in the library's own space only.
        vector = reader.load_space(None, "text").embed_text([query])[0]
        return reader.search.captions(query, vector, scope, k=k, min_gap_s=min_gap_s)
    if table == "frames":
        return reader.search.frames(embed(query), scope, k=k, min_gap_s=min_gap_s, space=space)
    if table == "all":
        vector, meaning = embed(query), reader.sentences.meaning(query)
        return reader.search.hybrid(query, vector, scope, k=k, min_gap_s=min_gap_s, space=space, meaning=meaning)
    raise usage_error(f"got table={table!r}; it is 'all', 'frames', 'words', 'captions', 'transcript' or 'text'")
