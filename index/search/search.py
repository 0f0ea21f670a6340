"""Search of frames by vector, of words said, shown and written (BM25), also by meaning, of labels.

Where several models wrote captions, recognised speech or read text in a video, the newest is searched; detections of
all models are. A frame that two runs are just writing at once counts once: `VideoWriter.complete` will reject the
video.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from kinodex.index.additions import plain_label
from kinodex.index.annotations.chapters import CHAPTERS
from kinodex.index.annotations.speakers import Speakers, shown_speaker
from kinodex.index.extracts import Extracts
from kinodex.index.kinds import KINDS, LINE_KINDS, FoundIn, KindName
from kinodex.index.rows import Hit, Scope, VideoRow
from kinodex.index.search.fusion import apart, distinct, followed, fuse, fuse_same, shares_words, suppress_neighbours
from kinodex.index.search.held_rows import HeldRows, held_rows, unit_query
from kinodex.index.search.queries import (
    FEW_VIDEOS,
    MOST_LISTED,
    Limits,
    Rows,
    check_scope,
    check_words,
    hit_of,
    limits_of,
    matching_rows,
    nearest_rows,
    on_player_clock,
    search_until_k,
)
from kinodex.index.search.typos import forgiving_rows
from kinodex.index.search.words import by_words_and_meaning, lines_like, with_meaning
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, at_least, equal, overlapping, within
from kinodex.index.store.held_tables import present
from kinodex.index.store.quiet_lance import ColumnOrdering
from kinodex.index.store.schema import CLIPS_PREFIX, captions_space, vectors_table
from kinodex.index.videos.visibility import VisibilityCache, space_scope

EVERYWHERE = Scope()
LINE_COLUMNS = ["video_id", "start_s", "end_s", "text", "model"]
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

        In another space only videos that have vectors there are searched. Exact in up to 20 videos and where no vector
        index was built.
        """
        in_space = space_scope(self._tables, self._visible, self._own_space, space)
        check_scope(self._visible, scope, k, min_gap_s)
        in_space.check(scope.video_ids or ())
        query = unit_query(vector, self._tables[in_space.table].schema.field("vector").type.list_size)
        limits, held = limits_of(self._visible, scope, within), self._held(in_space.table, scope)
        limits = limits if held is None else Limits(None)
        columns = ["video_id", "frame_no", "time_s"]

        def fetch(limit: int, where: Filter | None) -> Rows:
            if held is not None:
                return held.nearest(query, columns, limit)
            return nearest_rows(self._tables, in_space.table, query, columns, where, limits.are_few, limit)

        def to_hits(rows: Rows) -> list[Hit]:
            videos = in_space.videos({row["video_id"] for row in rows})
            shown = on_player_clock(rows, videos)
            complete = list({(row["video_id"], row["frame_no"]): row for row in shown}.values())
            kept = apart([(row["video_id"], row["time_s"]) for row in complete], min_gap_s)
            return [_frame_hit(complete[at], videos, "frames") for at in kept]

        return search_until_k(fetch, to_hits, k, 4 * k if min_gap_s else k, limits)

    def clips(
        self,
        vector: NDArray[Any],
        space: Fingerprint,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
    ) -> list[Hit]:
        """Find the `k` windows nearest to a unit vector `[dim]` of a video-text model, best first.

        A window that shares time with a better one of its video is left out. Only videos are searched that have all
        their windows by this model.
        """
        check_scope(self._visible, scope, k, min_gap_s)
        query, limits = unit_query(vector, space.dim), limits_of(self._visible, scope, overlapping)
        table, columns = vectors_table(space, CLIPS_PREFIX), ["video_id", "clip_no", "start_s", "end_s"]

        def fetch(limit: int, where: Filter | None) -> Rows:
            return nearest_rows(self._tables, table, query, columns, where, limits.are_few, limit)

        def to_hits(rows: Rows) -> list[Hit]:
            ids = {row["video_id"] for row in rows}
            models, videos = self._visible.models("clips", ids), self._visible.videos(ids)
            shown = [row for row in rows if space.digest in models.get(row["video_id"], ())]
            hits = [hit_of(row, "clips", None) for row in on_player_clock(shown, videos)]
            longest_s = max((hit.end_s - hit.time_s for hit in hits), default=0.0)
            return suppress_neighbours(hits, max(min_gap_s, longest_s))

        return search_until_k(fetch, to_hits, k, 4 * k, limits)

    def _held(self, table: str, scope: Scope) -> HeldRows | None:
        """Return the frames of the videos of a condition in memory, where they are neither few nor too many."""
        among, _ = self._visible.among()
        if among is None or scope != EVERYWHERE or not FEW_VIDEOS < len(among) <= MOST_LISTED:
            return None
        return held_rows(self._tables, table, among)

    def lines(
        self,
        kind: KindName,
        text: str,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        *,
        small_words: bool = True,
    ) -> list[Hit]:
        """Find the `k` lines of a kind that match a text best by BM25; words in "quotes" must follow each other.

        Without `small_words`, lines are left out that match by small words alone (see `shares_words`). Of a kind that
        forgives typos, lines with a letter or two wrong follow where fewer than `k` match.
        """
        lines = self._lines(kind, text, scope, k, min_gap_s)
        if not present(self._tables, [kind]):
            return []
        hits = search_until_k(lines.by_words, lines.to_hits, k, lines.first, lines.limits)
        hits = hits if small_words else [hit for hit in hits if shares_words(text, hit.text)]
        if KINDS[kind].forgives_typos and len(hits) < k:
            forgiven = search_until_k(lines.with_typos, lines.to_hits, k, lines.first, lines.limits)
            hits = suppress_neighbours(followed(hits, forgiven), min_gap_s)[:k]
        return hits

    def captions(
        self,
        text: str,
        vector: NDArray[Any] | None = None,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
    ) -> list[Hit]:
        """Find the `k` captions that match a text best by BM25, fused by rank with those nearest to its vector."""
        schema, own = self._tables["captions"].schema, self._own_space.digest
        if vector is None or captions_space(schema, own) != own:  # until `use-space` has embedded them again
            return self.lines("captions", text, scope, k, min_gap_s)
        lines = self._lines("captions", text, scope, k, min_gap_s)
        query = unit_query(vector, schema.field("vector").type.list_size)

        def by_meaning(limit: int, where: Filter | None) -> Rows:
            return nearest_rows(self._tables, "captions", query, LINE_COLUMNS, where, lines.limits.are_few, limit)

        found = [
            search_until_k(by, lines.to_hits, 2 * k, 2 * lines.first, lines.limits)
            for by in (lines.by_words, by_meaning)
        ]
        return suppress_neighbours(fuse_same(*found), min_gap_s)[:k]

    def _lines(self, source: KindName, text: str, scope: Scope, k: int, min_gap_s: float) -> _Lines:
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(text)
        limits = limits_of(self._visible, scope, overlapping)
        return _Lines(self._tables, self._visible, source, text, limits, 4 * k if min_gap_s else k, min_gap_s)

    def words(
        self,
        text: str,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        meaning: Meaning | None = None,
        sources: Collection[KindName] = tuple(LINE_KINDS),
    ) -> list[Hit]:
        """Find the `k` lines that match a text best: said, on screen or captions, in one order by BM25.

        With the text's `meaning` (`library.sentences.meaning`) lines of like meaning are fused in by rank, word in
        common or not. A line that shares only a small word with the text is left out (see `shares_words`).
        """
        limits = scope, 2 * k, min_gap_s
        found = [self.lines(kind, text, *limits, small_words=False) for kind in sources]
        like = lines_like(self._tables, self._visible, meaning, *limits, sources)
        return by_words_and_meaning(found, like, k, min_gap_s)

    def chapters(
        self, text: str, scope: Scope = EVERYWHERE, k: int = 10, level: Literal["chapter", "scene"] = "chapter"
    ) -> list[Hit]:
        """Find the `k` chapters, or scenes, that match best by BM25; a hit's text is title and summary, a line each."""
        check_scope(self._visible, scope, k)
        check_words(text)
        if not present(self._tables, [CHAPTERS]):
            return []
        limits = limits_of(self._visible, scope, overlapping, [equal("level", level)])

        def fetch(limit: int, where: Filter | None) -> Rows:
            return matching_rows(self._tables, CHAPTERS, text, [*LINE_COLUMNS, "title"], where, limit)

        def to_hits(rows: Rows) -> list[Hit]:
            shown = shown_rows(self._visible, rows, CHAPTERS)
            return [hit_of(row, "chapters", "\n".join(filter(None, [row["title"], row["text"]]))) for row in shown]

        return search_until_k(fetch, to_hits, k, k, limits)

    def extract(
        self, name: str, text: str, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """Find the `k` rows of an extract whose texts match best by BM25; the time of a hit is that of its evidence."""
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(text)
        version = Extracts(self._tables, self._visible).version(name)
        if version is None:
            return []
        columns = ["video_id", "start_s", "end_s", "evidence_start_s", "evidence_end_s", "text"]

        def fetch(limit: int, where: Filter | None) -> Rows:
            return matching_rows(self._tables, version.table, text, columns, where, limit)

        def to_hits(rows: Rows) -> list[Hit]:
            ids = {row["video_id"] for row in rows}
            models, videos = self._visible.models(version.stage, ids), self._visible.videos(ids)
            shown = [_on_evidence(row) for row in rows if version.key in models.get(row["video_id"], ())]
            hits = [hit_of(row, "extracts", row["text"]) for row in on_player_clock(shown, videos)]
            return suppress_neighbours(distinct(hits), min_gap_s)

        limits = limits_of(self._visible, scope, overlapping)
        return search_until_k(fetch, to_hits, k, 4 * k if min_gap_s else k, limits)

    def detections(
        self, label: str, min_score: float = 0.0, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """Find the `k` frames with the surest detections of a label, in any case, `min_gap_s` apart in a video."""
        check_scope(self._visible, scope, k, min_gap_s)
        check_words(label)
        of_label = [equal("label", plain_label(label)), at_least("score", min_score)]
        limits = limits_of(self._visible, scope, within, of_label)
        best_first = [ColumnOrdering("score", ascending=False), ColumnOrdering("video_id"), ColumnOrdering("time_s")]

        def fetch(limit: int, where: Filter | None) -> Rows:
            options = {"order_by": best_first, "limit": limit}
            rows: Rows = self._tables.rows("detections", where, DETECTION_COLUMNS, **options).to_pylist()
            return rows

        def to_hits(rows: Rows) -> list[Hit]:
            shown = shown_rows(self._visible, rows, "detections")
            videos = self._visible.videos({row["video_id"] for row in shown})
            best: dict[tuple[str, int], dict[str, Any]] = {}
            for row in shown:
                best.setdefault((row["video_id"], row["frame_no"]), row)
            hits = [_frame_hit(row, videos, "detections", row["label"]) for row in best.values()]
            return suppress_neighbours(hits, min_gap_s)

        return search_until_k(fetch, to_hits, k, 4 * k, limits)

    def hybrid(
        self,
        text: str,
        vector: NDArray[Any] | None,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
        meaning: Meaning | None = None,
        clip: tuple[NDArray[Any], Fingerprint] | None = None,
    ) -> list[Hit]:
        """Search frames, clips, transcript, captions and text on screen: four times `k` hits each, fused (see `fuse`).

        Frames are searched where there is a `vector`, and clips where `clip` gives the query's vector by their model,
        and that model.

        A line that shares only a small word with the text is left out (see `shares_words`). In another space captions,
        whose vectors are in the library's own, are found by words alone. With the text's `meaning` all kinds of
        text are found by it too.
        """
        found = self.by_each(text, vector, scope, 4 * k, min_gap_s, space, meaning, clip)
        return suppress_neighbours(fuse(*found, query=text), min_gap_s)[:k]

    def by_each(
        self,
        text: str,
        vector: NDArray[Any] | None,
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
        meaning: Meaning | None = None,
        clip: tuple[NDArray[Any], Fingerprint] | None = None,
    ) -> list[list[Hit]]:
        """Find `k` hits each, which `hybrid` fuses: of frames, of clips, and of each kind of lines (`LINE_KINDS`)."""
        in_own = space_scope(self._tables, self._visible, self._own_space, space).other is None
        frames = [] if vector is None else self.frames(vector, scope, k, min_gap_s, space)
        moving = [] if clip is None else self.clips(*clip, scope, k, min_gap_s)
        like = lines_like(self._tables, self._visible, meaning, scope, 3 * k)

        def lines(kind: KindName) -> list[Hit]:
            if kind == "captions":  # they have vectors too
                hits = self.captions(text, vector if in_own else None, scope, k)
            else:
                hits = self.lines(kind, text, scope, k, small_words=False)
            return with_meaning(hits, like, kind)[:k]

        return [frames, moving, *map(lines, LINE_KINDS)]


@dataclass(frozen=True, slots=True)
class _Lines:
    """A search of one kind of lines: how rows are fetched by words, and which of them are hits."""

    tables: Tables
    visible: VisibilityCache
    source: KindName
    text: str
    limits: Limits
    first: int
    """Rows that are fetched first."""
    min_gap_s: float

    def by_words(self, limit: int, where: Filter | None) -> Rows:
        return matching_rows(self.tables, self._table, self.text, self._columns, where, limit)

    def with_typos(self, limit: int, where: Filter | None) -> Rows:
        return forgiving_rows(self.tables, self._table, self.text, self._columns, where, limit)

    def to_hits(self, rows: Rows) -> list[Hit]:
        shown = shown_rows(self.visible, rows, self.source)
        names = Speakers(self.tables).names_of(row.get("speaker") for row in shown)
        said = [{**row, "speaker": shown_speaker(row.get("speaker"), names)} for row in shown]
        return suppress_neighbours(distinct([hit_of(row, self.source, row["text"]) for row in said]), self.min_gap_s)

    @property
    def _table(self) -> str:
        return self.source

    @property
    def _columns(self) -> list[str]:
        return [*LINE_COLUMNS, *(("speaker", "language") if self.source == "speech" else ())]


def shown_rows(visible: VisibilityCache, rows: Rows, stage: str) -> Rows:
    """Keep rows of complete videos by no model or the newest (detections: any), with times that a player shows."""
    ids = {row["video_id"] for row in rows}
    videos, models = visible.videos(ids), visible.models(stage, ids)
    shown = {id_: names if stage == "detections" else names[-1:] for id_, names in models.items()}
    return on_player_clock([row for row in rows if row["model"] in (None, *shown.get(row["video_id"], ()))], videos)


def _on_evidence(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an extract at the time of its evidence, where it names some."""
    if row["evidence_start_s"] is None:
        return dict(row)
    return {**row, "start_s": row["evidence_start_s"], "end_s": row["evidence_end_s"]}


def _frame_hit(row: Mapping[str, Any], videos: Mapping[str, VideoRow], source: FoundIn, text: str | None = None) -> Hit:
    """Return the hit of a frame, found by its vector, else by a score; it lasts until the next sample."""
    video, time_s = videos[row["video_id"]], row["time_s"]
    end_s = max(min(time_s + 1 / video.sample_fps, video.end_s), time_s)
    cosine: Any = 1.0 - row["_distance"] if "_distance" in row else None
    return Hit(row["video_id"], time_s, end_s, row["frame_no"], row.get("score", cosine), text, source, cosine)
