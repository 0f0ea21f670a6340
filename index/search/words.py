"""Search of all text of a library: what is said, what is on screen, and captions, by words and by meaning.

Words are matched in each kind of text by BM25 and put in one order by it; lines of like meaning come from the one table
of a sentence model. Both orders are fused by rank. A line is found by meaning only where it is more like the query than
chance has it (`index.embedding.sentences.likeness`): a nearest line always exists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from index.annotations.sentences import STAGE, Meaning
from index.annotations.text_lines import SOURCES, Source, shown_models
from index.clock import moved_s
from index.rows import Hit, Scope
from index.search.fusion import distinct, fuse_same, suppress_neighbours
from index.search.in_memory import unit_query
from index.search.query import Rows, check_scope, in_scope, is_few, nearest_rows, search_until_k
from index.search.spoken import with_speakers
from index.store.database import Tables
from index.store.filters import all_of, one_of, overlapping
from index.store.schema import SENTENCES_PREFIX, vectors_table
from index.videos.visibility import VisibilityCache

COLUMNS = ["video_id", "source", "start_s", "end_s", "text", "model"]


def lines_like(
    tables: Tables,
    visible: VisibilityCache,
    meaning: Meaning,
    scope: Scope,
    k: int,
    min_gap_s: float = 0.0,
    sources: Collection[Source] = tuple(SOURCES),
) -> list[Hit]:
    """Find the `k` lines that are most like a query in meaning, best first, and none that is like it by chance alone.

    Lines of a video begin `min_gap_s` apart. Only lines are found that readers see: of the newest captions, speech and
    text on screen. Raises QueryError or UnknownVideo.
    """
    check_scope(visible, scope, k, min_gap_s)
    table = vectors_table(meaning.space, SENTENCES_PREFIX)
    query = unit_query(meaning.vector, meaning.space.dim)
    of_kinds = [one_of("source", sorted(sources))] if len(sources) < len(SOURCES) else []
    where = all_of(in_scope(visible, scope, overlapping) + of_kinds)

    def fetch(limit: int) -> Rows:
        rows = nearest_rows(tables, table, query, COLUMNS, where, is_few(scope), limit)
        rows = [row for row in rows if 1.0 - row["_distance"] >= meaning.least_cosine]
        return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["start_s"]))

    def to_hits(rows: Rows) -> list[Hit]:
        return suppress_neighbours(distinct([_hit(row) for row in _shown(visible, meaning, rows)]), min_gap_s)

    hits = search_until_k(fetch, to_hits, k, first=4 * k if min_gap_s else 2 * k)
    zeros_s = visible.zeros_s({hit.video_id for hit in hits})
    return [_moved(hit, -zeros_s[hit.video_id]) for hit in with_speakers(tables, visible, hits)]


def _moved(hit: Hit, by_s: float) -> Hit:
    return replace(hit, time_s=moved_s(hit.time_s, by_s), end_s=moved_s(hit.end_s, by_s))


def with_meaning(hits: Sequence[Hit], like: Sequence[Hit], source: Source) -> list[Hit]:
    """Fuse hits by words of one kind of text with the lines of that kind that are like the query in meaning."""
    of_kind = [hit for hit in like if hit.source == source]
    return fuse_same(hits, of_kind) if of_kind else list(hits)


def by_words_and_meaning(searches: Sequence[Sequence[Hit]], like: Sequence[Hit], k: int, min_gap_s: float) -> list[Hit]:
    """Put hits by words of several kinds of text in one order, by BM25, and fuse it with those by meaning, if any.

    Of two lines of equal rank the one of like meaning comes first: one word in common says less.
    """
    ranked = sorted(
        (hit for hits in searches for hit in hits), key=lambda hit: (-(hit.bm25 or 0.0), hit.video_id, hit.time_s)
    )
    if like:
        ranked = sorted(
            fuse_same(ranked, like), key=lambda hit: (-hit.score, -(hit.cosine or 0.0), hit.video_id, hit.time_s)
        )
    return suppress_neighbours(ranked, min_gap_s)[:k]


def _shown(visible: VisibilityCache, meaning: Meaning, rows: Rows) -> Rows:
    """Keep the rows that readers see: of videos that the model embedded whole, and of text that is still shown."""
    ids = {row["video_id"] for row in rows}
    videos, embedded = visible.videos(ids), visible.models(STAGE, ids)
    whole = {id_ for id_ in videos if meaning.space.digest in embedded.get(id_, ())}
    models: Mapping[Source, dict[str, tuple[str | None, ...]]] = {
        source: shown_models(visible, source, ids) for source in SOURCES
    }
    return [row for row in rows if row["video_id"] in whole and row["model"] in models[row["source"]][row["video_id"]]]


def _hit(row: Mapping[str, Any]) -> Hit:
    cosine = 1.0 - row["_distance"]
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, cosine, row["text"], row["source"], cosine)
