"""Search of all text of a library: what is said, what is on screen, and captions, by words and by meaning.

Words are matched in each kind of text by BM25 and put in one order by it; lines of like meaning come from the one table
of a sentence model. Both orders are fused by rank. A line is found by meaning only where it is more like the query than
chance has it (`spaces.sentence_model.Likeness`): a nearest line always exists.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

from kinodex.index.annotations.lines import shown_models
from kinodex.index.clocks import moved_s
from kinodex.index.kinds import LINE_KINDS, KindName
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.fusion import distinct, fuse_same, suppress_neighbours
from kinodex.index.search.held_rows import unit_query
from kinodex.index.search.queries import Rows, check_scope, hit_of, limits_of, nearest_rows, search_until_k
from kinodex.index.search.spoken_lines import with_speakers
from kinodex.index.sentences import STAGE, Meaning
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, one_of, overlapping
from kinodex.index.store.schema import SENTENCES_PREFIX, vectors_table
from kinodex.index.videos.visibility import VisibilityCache

COLUMNS = ["video_id", "start_s", "end_s", "text", "source", "model"]


def lines_like(
    tables: Tables,
    visible: VisibilityCache,
    meaning: Meaning | None,
    scope: Scope,
    k: int,
    min_gap_s: float = 0.0,
    sources: Collection[KindName] = tuple(LINE_KINDS),
) -> list[Hit]:
    """Find the `k` lines that are most like a query in meaning, best first, and none that is like it by chance alone.

    Only lines are found that readers see: of the newest captions, speech and text on screen; none without a `meaning`.
    """
    if meaning is None:
        return []
    check_scope(visible, scope, k, min_gap_s)
    table = vectors_table(meaning.space, SENTENCES_PREFIX)
    query = unit_query(meaning.vector, meaning.space.dim)
    of_kinds = [one_of("source", sorted(sources))] if len(sources) < len(LINE_KINDS) else []
    limits = limits_of(visible, scope, overlapping, of_kinds)

    def fetch(limit: int, where: Filter | None) -> Rows:
        rows = nearest_rows(tables, table, query, COLUMNS, where, limits.are_few, limit)
        return [row for row in rows if 1.0 - row["_distance"] >= meaning.least_cosine]

    def to_hits(rows: Rows) -> list[Hit]:
        hits = [hit_of(row, row["source"], row["text"]) for row in _shown(visible, meaning, rows)]
        return suppress_neighbours(distinct(hits), min_gap_s)

    hits = search_until_k(fetch, to_hits, k, 4 * k if min_gap_s else 2 * k, limits)
    by_s = {video_id: -zero_s for video_id, zero_s in visible.zeros_s({hit.video_id for hit in hits}).items()}
    return [
        replace(hit, time_s=moved_s(hit.time_s, by_s[hit.video_id]), end_s=moved_s(hit.end_s, by_s[hit.video_id]))
        for hit in with_speakers(tables, visible, hits)
    ]


def with_meaning(hits: Sequence[Hit], like: Sequence[Hit], source: KindName) -> list[Hit]:
    """Fuse hits by words of one kind of text with the lines of that kind that are like the query in meaning."""
    of_kind = [hit for hit in like if hit.found_in == source]
    return fuse_same(hits, of_kind) if of_kind else list(hits)


def by_words_and_meaning(searches: Sequence[Sequence[Hit]], like: Sequence[Hit], k: int, min_gap_s: float) -> list[Hit]:
    """Put hits of several kinds of text in one order by BM25, and fuse it with those by meaning, which go before."""
    ranked = sorted(chain(*searches), key=lambda hit: (-(hit.bm25 or 0.0), hit.video_id, hit.time_s))
    if like:
        fused = fuse_same(ranked, like)
        ranked = sorted(fused, key=lambda hit: (-hit.score, -(hit.cosine or 0.0), hit.video_id, hit.time_s))
    return suppress_neighbours(ranked, min_gap_s)[:k]


def _shown(visible: VisibilityCache, meaning: Meaning, rows: Rows) -> Rows:
    """Keep the rows that readers see: of videos that the model embedded whole, and of text that is still shown."""
    ids = {row["video_id"] for row in rows}
    videos, embedded = visible.videos(ids), visible.models(STAGE, ids)
    whole = {id_ for id_ in videos if meaning.space.digest in embedded.get(id_, ())}
    models = {source: shown_models(visible, source, ids) for source in LINE_KINDS}
    return [row for row in rows if row["video_id"] in whole and row["model"] in models[row["source"]][row["video_id"]]]
