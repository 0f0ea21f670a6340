"""Search of frames by vector, of words said, shown and written (BM25), also by meaning, of labels.

Where several models wrote captions, recognised speech or read text in a video, the newest is searched; detections of
all models are. A frame that two runs are just writing at once counts once: `VideoWriter.complete` will reject the
video.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from numpy.typing import NDArray

from kinodex.index.additions import plain_label
from kinodex.index.annotations import LINE_SOURCES, SCENES, SCENES_STAGE, Source, Speakers, shown_speaker
from kinodex.index.rows import Hit, Scope, VideoRow
from kinodex.index.search.fusion import distinct, followed, fuse, fuse_same, shares_words, suppress_neighbours
from kinodex.index.search.in_memory import unit_query
from kinodex.index.search.words import (
    Rows,
    by_words_and_meaning,
    check_scope,
    check_words,
    forgiving_rows,
    in_scope,
    is_few,
    lines_like,
    matching_rows,
    nearest_rows,
    on_player_clock,
    search_until_k,
    with_meaning,
)
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.towers import Fingerprint
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import present
from kinodex.index.store.quiet_lance import ColumnOrdering, MultiMatchQuery
from kinodex.index.store.schema import all_of, at_least, equal, overlapping, within
from kinodex.index.videos.visibility import VisibilityCache, space_scope

EVERYWHERE = Scope()
LINE_COLUMNS = ["video_id", "start_s", "end_s", "text", "model"]
SPOKEN_COLUMNS = [*LINE_COLUMNS, "speaker", "language"]
CAPTION_COLUMNS = ["video_id", "segment_no", "start_s", "end_s", "text", "model"]
DETECTION_COLUMNS = ["video_id", "frame_no", "time_s", "label", "score", "model"]


class Search:
    """Searches of one library. Each raises QueryError for an impossible query, UnknownVideo for an unknown video."""

    def __init__(self, tables: Tables, visible: VisibilityCache, own_space: Fingerprint) -> None:
        self._tables = tables
        self._visible = visible
        self._own_space = own_space

    def frames(
        self,
        vector: NDArray[Any],
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
    ) -> list[Hit]:
        """Find the `k` frames nearest to a unit vector `[dim]` by cosine, best first, `min_gap_s` apart in a video.

        In another space (a name or digest of `Library.spaces`) only videos that have vectors there are searched.
        Exact in up to 20 videos and where no vector index was built.
        """
        in_space = space_scope(self._tables, self._visible, self._own_space, space)
        check_scope(self._visible, scope, k, min_gap_s)
        in_space.check(scope.video_ids or ())
        query = unit_query(vector, self._tables[in_space.table].schema.field("vector").type.list_size)
        where = all_of(in_scope(self._visible, scope, within))
        columns = ["video_id", "frame_no", "time_s"]

        def fetch(limit: int) -> Rows:
            rows = nearest_rows(self._tables, in_space.table, query, columns, where, is_few(scope), limit)
            return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["frame_no"]))

        def to_hits(rows: Rows) -> list[Hit]:
            videos = in_space.videos({row["video_id"] for row in rows})
            shown = on_player_clock(rows, videos)
            complete = {(row["video_id"], row["frame_no"]): row for row in shown}
            return suppress_neighbours([_frame_hit(row, videos) for row in complete.values()], min_gap_s)

        return search_until_k(fetch, to_hits, k, first=4 * k if min_gap_s else k)

    def transcript(self, text: str, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0) -> list[Hit]:
        """Find the `k` transcript lines that match a text best by BM25; words in "quotes" must follow each other.

        Any text is a valid query; characters that form no word match nothing. Lines of a video begin `min_gap_s` apart.
        """
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(text)
        where = all_of(in_scope(self._visible, scope, overlapping))

        def by_words(limit: int) -> Rows:
            return _best_first(matching_rows(self._tables, "transcript", text, SPOKEN_COLUMNS, where, limit))

        def to_hits(rows: Rows) -> list[Hit]:
            names = Speakers(self._tables).names_of(row["speaker"] for row in rows)
            hits = [_spoken_hit(row, names) for row in self._shown(rows, "speech")]
            return suppress_neighbours(distinct(hits), min_gap_s)

        return search_until_k(by_words, to_hits, k, first=4 * k if min_gap_s else k)

    def screen_text(
        self,
        text: str,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        *,
        typos: bool = True,
        small_words: bool = True,
    ) -> list[Hit]:
        """Find the `k` lines of text on screen that match a text best by BM25; see `transcript`.

        With `typos`, where fewer than `k` match, those follow that hold all its words with a letter or two wrong.
        Without `small_words`, lines are left out that match by small words alone (see `shares_words`).
        """
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(text)
        if not present(self._tables, ["screen_text"]):
            return []
        where = all_of(in_scope(self._visible, scope, overlapping))
        first = 4 * k if min_gap_s else k

        def by_words(limit: int) -> Rows:
            return _best_first(matching_rows(self._tables, "screen_text", text, LINE_COLUMNS, where, limit))

        def with_typos(limit: int) -> Rows:
            return _best_first(forgiving_rows(self._tables, "screen_text", text, LINE_COLUMNS, where, limit))

        def to_hits(rows: Rows) -> list[Hit]:
            hits = [_text_hit(row, "text") for row in self._shown(rows, "text")]
            return suppress_neighbours(distinct(hits), min_gap_s)

        hits = search_until_k(by_words, to_hits, k, first)
        hits = hits if small_words else _with_shared_words(text, hits)
        if typos and len(hits) < k:
            hits = suppress_neighbours(followed(hits, search_until_k(with_typos, to_hits, k, first)), min_gap_s)[:k]
        return hits

    def captions(
        self,
        text: str,
        vector: NDArray[Any] | None = None,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
    ) -> list[Hit]:
        """Find the `k` captions that match a text best by BM25, fused with those nearest to its vector, if it is given.

        Each of the two searches returns twice `k` captions, which are then fused by rank. Captions of a video begin
        `min_gap_s` apart.
        """
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(text)
        where = all_of(in_scope(self._visible, scope, overlapping))

        def by_words(limit: int) -> Rows:
            return _best_first(matching_rows(self._tables, "captions", text, CAPTION_COLUMNS, where, limit))

        def to_hits(rows: Rows) -> list[Hit]:
            hits = [_text_hit(row, "caption") for row in self._shown(rows, "captions")]
            return suppress_neighbours(distinct(hits), min_gap_s)

        wider = 4 if min_gap_s else 1
        if vector is None:
            return search_until_k(by_words, to_hits, k, first=wider * k)
        query = unit_query(vector, self._tables["captions"].schema.field("vector").type.list_size)

        def by_meaning(limit: int) -> Rows:
            rows = nearest_rows(self._tables, "captions", query, CAPTION_COLUMNS, where, is_few(scope), limit)
            return sorted(rows, key=lambda row: (row["_distance"], row["video_id"], row["start_s"]))

        found = [search_until_k(by, to_hits, 2 * k, first=2 * wider * k) for by in (by_words, by_meaning)]
        return suppress_neighbours(fuse_same(*found), min_gap_s)[:k]

    def words(
        self,
        text: str,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        meaning: Meaning | None = None,
        sources: Collection[Source] = tuple(LINE_SOURCES),
    ) -> list[Hit]:
        """Find the `k` lines that match a text best: said, on screen or captions, in one order by BM25.

        With the text's `meaning` (`library.sentences.meaning`) lines of like meaning are fused in by rank, word in
        common or not. A line that shares only a small word with the text is left out (see `shares_words`). `sources`
        are the kinds of text that are searched: "transcript", "text" or "caption".
        """
        limits = scope, 2 * k, min_gap_s
        searches = {
            "transcript": lambda: _with_shared_words(text, self.transcript(text, *limits)),
            "text": lambda: self.screen_text(text, *limits, small_words=False),
            "caption": lambda: _with_shared_words(text, self.captions(text, None, *limits)),
        }
        found = [searches[each]() for each in sources]
        return by_words_and_meaning(found, self._like(meaning, scope, 2 * k, min_gap_s, sources), k, min_gap_s)

    def chapters(self, text: str, scope: Scope = EVERYWHERE, k: int = 10) -> list[Hit]:
        """Find the `k` chapters whose title and summary match a text best by BM25; see `search_scenes`."""
        return search_scenes(self._tables, self._visible, text, scope, k)

    def detections(
        self, label: str, min_score: float = 0.0, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """Find the `k` frames with the surest detections of a label, in any case, `min_gap_s` apart in a video."""
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(label)
        of_label = [equal("label", plain_label(label)), at_least("score", min_score)]
        where = all_of(of_label + in_scope(self._visible, scope, within))
        best_first = [ColumnOrdering("score", ascending=False), ColumnOrdering("video_id"), ColumnOrdering("time_s")]

        def fetch(limit: int) -> Rows:
            found = self._tables.rows("detections", where, DETECTION_COLUMNS, order_by=best_first, limit=limit)
            rows: Rows = found.to_pylist()
            return rows

        def to_hits(rows: Rows) -> list[Hit]:
            shown = self._shown(rows, "detections")
            videos = self._visible.videos({row["video_id"] for row in shown})
            best: dict[tuple[str, int], dict[str, Any]] = {}
            for row in shown:
                best.setdefault((row["video_id"], row["frame_no"]), row)
            return suppress_neighbours([_detection_hit(row, videos) for row in best.values()], min_gap_s)

        return search_until_k(fetch, to_hits, k, first=4 * k)

    def hybrid(
        self,
        text: str,
        vector: NDArray[Any],
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
        meaning: Meaning | None = None,
    ) -> list[Hit]:
        """Search frames, transcript, captions and text on screen: four times `k` hits of each, fused (see `fuse`).

        A line, said or shown, that shares only a small word with the text is left out (see `shares_words`). In
        another space captions, whose vectors are in the library's own, are found by words alone. With the text's
        `meaning` all three kinds of text are found by it too (see `words`).
        """
        found = self.by_each(text, vector, scope, 4 * k, min_gap_s, space, meaning)
        return suppress_neighbours(fuse(*found, query=text), min_gap_s)[:k]

    def by_each(
        self,
        text: str,
        vector: NDArray[Any],
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
        meaning: Meaning | None = None,
    ) -> tuple[list[Hit], list[Hit], list[Hit], list[Hit]]:
        """Find `k` hits each, which `hybrid` fuses: of frames, transcript, captions, text on screen."""
        in_own = space_scope(self._tables, self._visible, self._own_space, space).other is None
        frames = self.frames(vector, scope, k, min_gap_s, space)
        said = _with_shared_words(text, self.transcript(text, scope, k))
        shown = self.screen_text(text, scope, k, small_words=False)
        captions = self.captions(text, vector if in_own else None, scope, k)
        like = self._like(meaning, scope, 3 * k, 0.0)
        said, captions = with_meaning(said, like, "transcript"), with_meaning(captions, like, "caption")
        return frames, said[:k], captions[:k], with_meaning(shown, like, "text")[:k]

    def _like(
        self,
        meaning: Meaning | None,
        scope: Scope,
        k: int,
        min_gap_s: float,
        sources: Collection[Source] = tuple(LINE_SOURCES),
    ) -> list[Hit]:
        if meaning is None:
            return []
        return lines_like(self._tables, self._visible, meaning, scope, k, min_gap_s, sources)

    def _shown(self, rows: Rows, stage: str) -> Rows:
        """Keep rows of complete videos without a model, or of the newest model that completed the stage there.

        Detections are of all such models: each may look for other things.
        """
        ids = {row["video_id"] for row in rows}
        videos, models = self._visible.videos(ids), self._visible.models(stage, ids)
        shown = {id_: names if stage == "detections" else names[-1:] for id_, names in models.items()}
        seen = [row for row in rows if row["model"] in (None, *shown.get(row["video_id"], ()))]
        return on_player_clock(seen, videos)


def _with_shared_words(text: str, hits: list[Hit]) -> list[Hit]:
    return [hit for hit in hits if shares_words(text, hit.text)]


def _best_first(rows: Rows) -> Rows:
    """Sort by score, rows of equal score by position."""
    return sorted(rows, key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))


def _frame_hit(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> Hit:
    score = 1.0 - row["_distance"]
    return Hit(
        row["video_id"], row["time_s"], _shown_until(row, videos), row["frame_no"], score, None, "frame", cosine=score
    )


def _detection_hit(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> Hit:
    end_s = _shown_until(row, videos)
    return Hit(row["video_id"], row["time_s"], end_s, row["frame_no"], row["score"], row["label"], "detection")


def _shown_until(row: Mapping[str, Any], videos: Mapping[str, VideoRow]) -> float:
    video = videos[row["video_id"]]
    time_s: float = row["time_s"]
    return max(min(time_s + 1 / video.sample_fps, video.end_s), time_s)


def _spoken_hit(row: Mapping[str, Any], names: Mapping[str, str]) -> Hit:
    speaker = shown_speaker(row["speaker"], names)
    return replace(_text_hit(row, "transcript"), speaker=speaker, language=row["language"])


def _text_hit(row: Mapping[str, Any], source: Literal["transcript", "text", "caption"]) -> Hit:
    bm25 = row.get("_score")
    cosine = 1.0 - row["_distance"] if "_distance" in row else None
    score = bm25 or 0.0
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, score, row["text"], source, cosine, bm25)


# Search of chapters and scenes by the words of their titles and summaries.

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
    if not present(tables, [SCENES]):
        return []
    where = all_of([equal("level", level), *in_scope(visible, scope, overlapping)])
    words = MultiMatchQuery(text, ["title", "text"])

    def fetch(limit: int) -> Rows:
        found = tables.rows(
            SCENES, where, [*COLUMNS, "_score"], full_text_query=words, prefilter=True, limit=limit
        ).to_pylist()
        return sorted(found, key=lambda row: (-row["_score"], row["video_id"], row["start_s"]))

    def to_hits(rows: Rows) -> list[Hit]:
        ids = {row["video_id"] for row in rows}
        videos, models = visible.videos(ids), visible.models(SCENES_STAGE, ids)
        newest = {video_id: models[video_id][-1] for video_id in videos if video_id in models}
        shown = on_player_clock(rows, videos)
        return [_hit(row) for row in shown if newest.get(row["video_id"]) == row["model"]]

    return search_until_k(fetch, to_hits, k, first=k)


def _hit(row: dict[str, Any]) -> Hit:
    text = "\n".join(filter(None, [row["title"], row["text"]]))
    score = row["_score"]
    return Hit(row["video_id"], row["start_s"], row["end_s"], None, score, text, "chapter", None, score)
