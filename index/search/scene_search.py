"""Search of chapters and scenes by the words of their titles and summaries."""

from __future__ import annotations

from typing import Any

from index.annotations.scenes import STAGE, TABLE
from index.rows import Hit, Scope
from index.search.query import Rows, check_scope, check_words, in_scope, on_player_clock, search_until_k
from index.store.database import Tables
from index.store.filters import all_of, equal, overlapping
from index.store.late_tables import present
from index.store.quiet_lance import MultiMatchQuery
from index.videos.visibility import VisibilityCache

COLUMNS = ["video_id", "start_s", "end_s", "title", "text", "model"]


def search_scenes(
    tables: Tables, visible: VisibilityCache, text: str, scope: Scope, k: int, level: str = "chapter"
) -> list[Hit]:
    """Find the `k` chapters, or scenes, whose title and summary match a text best by BM25, best first.

    The text of a hit is the title, and the summary in a line of its own. Where several models summarised a video, the
    newest is searched. Raises QueryError or UnknownVideo.
    """
    check_scope(visible, scope, k)
    check_words(text)
    if not present(tables, [TABLE]):
        return []
    where = all_of([equal("level", level), *in_scope(visible, scope, overlapping)])
    words = MultiMatchQuery(text, ["title", "text"])

    def fetch(limit: int) -> Rows:
        found = tables.rows(
            TABLE, where, [*COLUMNS, "_score"], full_text_query=words, prefilter=True, limit=limit
        ).to_pylist()
        return sorted(found, key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))

    def to_hits(rows: Rows) -> list[Hit]:
        ids = {row["video_id"] for row in rows}
        videos, models = visible.videos(ids), visible.models(STAGE, ids)
        newest = {video_id: models[video_id][-1] for video_id in videos if video_id in models}
        shown = on_player_clock(rows, videos)
        return [_hit(row) for row in shown if newest.get(row["video_id"]) == row["model"]]

    return search_until_k(fetch, to_hits, k, first=k)


def _hit(row: dict[str, Any]) -> Hit:
    text = "\n".join(filter(None, [row["title"], row["text"]]))
    score = row["_score"]
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, score, text, "chapter", None, score)
