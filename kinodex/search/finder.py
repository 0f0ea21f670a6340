"""Carry out a search: by words, by a picture or by both, in one place of a library or in several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kinodex.errors import KinodexError
from kinodex.index.errors import NoVectors, TimeOutside, UnknownWords
from kinodex.index.kinds import ALL, KINDS, LINE_KINDS
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.fusion import fuse, suppress_neighbours
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError
from kinodex.search.pictures import Picture, is_vector, unit_vector, upright_pixels
from kinodex.search.places import checked_place
from kinodex.search.vectors import Floats, QueryVectors, embedder_key, plain_query

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.sentences import Meaning
    from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
    from kinodex.index.spaces.fingerprint import Fingerprint
    from kinodex.index.spaces.towers import Sigmoid
    from kinodex.jobs.clip_models import ClipQueries
    from kinodex.requests import Find

AHEAD = 4
"""Hits that each of several searches gives to fusion, for one that is wanted."""


class Finder:
    """Searches of an open library in one of its spaces (None: its own). Towers are loaded when they are first needed.

    `embed_text` and `meaning_of` replace the library's own, for callers that load towers in another way.
    """

    def __init__(
        self,
        library: LibraryReader,
        space: str | None = None,
        *,
        vectors: QueryVectors | None = None,
        embed_text: Callable[[str], Floats] | None = None,
        meaning_of: Callable[[str], Meaning | None] | None = None,
    ) -> None:
        self.library = library
        self.space = space
        self.vectors = QueryVectors() if vectors is None else vectors
        self.clips_missing = ""
        """Why the last search of all went without the clips that there are; empty where it did not."""
        self._embed_text = embed_text or (lambda text: self._text_tower.embed_text([text])[0])
        self._meaning_of = meaning_of or library.sentences.meaning
        self._clip_queries: ClipQueries | None = None

    def find(self, request: Find, picture: Picture | None = None) -> list[Hit]:
        """Find the hits of a request, best first, beside its words also of a `picture`.

        Raises UsageError, QueryError, SpaceError or UnknownVideo, and as `kinodex.jobs.rerank.reranked` does.
        """
        if request.rerank is None:
            return self._ranked(request, picture)
        from kinodex.jobs.rerank import compared, rerank_address, reranked

        rerank_address(request.rerank)
        hits = self._ranked(request.model_copy(update={"k": compared(request.k)}), picture)
        return reranked(self.library, request.query, hits, request.rerank)[: request.k]

    def missing(self, place: str) -> str | None:
        """Return the kind whose absence explains that nothing can be found in a place; None where there is some.

        Speech is never missing: subtitles come with the videos.
        """
        kind = KINDS.get(place)
        if kind is None or not kind.is_added or kind.name == "speech":
            return None
        return None if any(added.stage == kind.name for added in self.library.info().added) else kind.name

    @property
    def fingerprint(self) -> Fingerprint:
        """The space that is searched; raises UsageError if the library does not have it."""
        from kinodex.jobs.open import find_space

        return find_space(self.library, self.space)

    def load(self) -> None:
        """Load the tower of texts, if there is one, so that no search waits for it; raises SpaceError as it comes."""
        if self._searched.has_vectors:
            _ = self._text_tower

    def embed(self, words: str = "", picture: Picture | None = None) -> Floats:
        """Return the unit vector `[dim]` of words, of a picture, or of both, which count a half each.

        Raises UnknownWords for words alone of which the space knows none.
        """
        if picture is None:
            if (unknown := self._unknown(words)) is not None:
                raise unknown
            return self._embed_words(words)
        seen = self._embed_picture(picture)
        if not words.strip():
            return seen
        both = seen + self._embed_words(words)
        vector: Floats = (both / np.linalg.norm(both)).astype(np.float32)
        return vector

    def unsearched(self, request: Find) -> UnknownWords | None:
        """Say why the words of a request are compared with no picture, though there are vectors; None if they are."""
        is_by_words = request.in_ in (ALL, "frames") and request.like is None and request.query.strip()
        return self._unknown(request.query) if is_by_words and self._searched.has_vectors else None

    def _unknown(self, words: str) -> UnknownWords | None:
        """Return the error of words of which the space knows none, else None."""
        return None if self._embed_words(words).any() else UnknownWords.of(self._searched.name, words)

    def _query(self, words: str, picture: Picture | None = None) -> Floats | None:
        """Return the vector of a query; None for words in a library without a space, where lines alone are found."""
        if picture is None and (not self._searched.has_vectors or self._unknown(words)):
            return None
        return self.embed(words, picture)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return the unit vectors `[n, dim]` of texts; the tower embeds those that are not kept together."""
        plain = [*map(plain_query, texts)]
        new = [text for text in dict.fromkeys(plain) if self.vectors.get(self._embedder, text) is None]
        made = dict(zip(new, self._text_tower.embed_text(new), strict=True)) if new else {}
        for text, vector in made.items():
            self.vectors.keep(self._embedder, text, vector)
        return np.stack([made[text] if text in made else self._embed_words(text) for text in plain])

    def _ranked(self, request: Find, picture: Picture | None) -> list[Hit]:
        among = self.library.where(request.where)
        if request.like is None:
            return self._described(request, self._search(request, picture, among), picture)
        if picture is not None:
            raise UsageError("got a picture and like, which is another; give one of them")
        frame = self._frame_at(request.like)
        # Of its own neighbours no more than three are among the hits, which keep their distance.
        wider = request.model_copy(update={"k": request.k + 3, "in_": "frames", "query": ""})
        hits = self._described(wider, self._search(wider, frame.vector, among), frame.vector)
        return [hit for hit in hits if not frame.is_near(hit, request.min_gap_s)][: request.k]

    def _search(self, request: Find, picture: Picture | None, among: LibraryReader) -> list[Hit]:
        place = checked_place(request, picture, self.library)
        scope = Scope(among.ids_named(request.videos), request.start_s, request.end_s)
        limits, words, search = (scope, request.k, request.min_gap_s), request.query, among.search
        match place:
            case "frames":
                if not self._searched.has_vectors:
                    raise NoVectors.of(self.library.uri)
                vector = self._query(words, picture)
                return [] if vector is None else search.frames(vector, *limits, self.space)
            case "clips":
                query = self._clip_query(words, picture)
                return [] if query is None else search.clips(query[0], query[1], *limits)
            case "words":
                meaning = self._meaning_of(words)
                return search.words(words, *limits, meaning and meaning.every())
            case "captions":  # they have vectors only in the library's own space
                return search.captions(words, self._query(words) if self._in_own_space else None, *limits)
            case "chapters":
                return search.chapters(words, scope, request.k)
            case "detections":
                return search.detections(words, request.min_score, *limits)
            case "all":
                vector, meaning = self._query(words, picture), self._meaning_of(words)
                wider, clip = (scope, AHEAD * request.k, request.min_gap_s), self._clip_query_or_note(words, picture)
                found = search.by_each(words, vector, *wider, self.space, meaning, clip)
                return suppress_neighbours(fuse(*found, query=words), request.min_gap_s)[: request.k]
        if place in LINE_KINDS:
            return search.lines(place, words, *limits)
        return search.extract(place, words, *limits)

    def _described(self, request: Find, hits: list[Hit], picture: Picture | None) -> list[Hit]:
        """Return the hits with what readers want to know beside: titles, times of recording, probabilities."""
        from kinodex.index.metadata import shown_at

        if not hits:
            return []
        if picture is None and request.in_ in (ALL, "frames"):
            sigmoid = self.library.sigmoid(self.library.space(self.space), request.query)
            hits = [_with_probability(hit, sigmoid) for hit in hits] if sigmoid else hits
        videos = {video_id: self.library.video(video_id) for video_id in {hit.video_id for hit in hits}}
        columns, how = self.library.metadata.of(list(videos)), self._joined_by(request, picture)

        def described(hit: Hit) -> Hit:
            video = videos[hit.video_id]
            recorded_at = shown_at(columns.get(hit.video_id, {}), video, hit.time_s)
            return replace(hit, title=video.title, query=how(hit), recorded_at=recorded_at)

        return [described(hit) for hit in hits]

    def _frame_at(self, named: str) -> _Frame:
        """Return the stored frame on screen at `VIDEO@SECONDS`, with its vector in the space that is searched."""
        video, _, at = named.rpartition("@")
        try:
            time_s = parse_time(at)
        except KinodexError:
            video = ""
        if not video:
            raise UsageError(f"got like={named[:60]!r}; give a video and seconds, such as film-01@12.5")
        row = self.library.video(video)
        (frame,) = self.library.frames_at(row.video_id, [time_s], mode="shown")
        held = self.library.vectors(row.video_id, self.space)
        at_frame = np.flatnonzero(held.frame_no == frame.frame_no)
        if not len(at_frame):
            raise TimeOutside(f"got frame {frame.frame_no} of {row.title}, which has no vector in this space")
        return _Frame(row.video_id, frame.time_s, held.vectors[at_frame[0]])

    def _clip_query(self, words: str, picture: Picture | None) -> tuple[Floats, Fingerprint] | None:
        """Return a query as the vector of the model of the clips, and that model; None where there are no clips."""
        space = self.library.visible.usual_space("clips")
        if space is None or is_vector(picture):
            return None
        from kinodex.jobs.clip_models import ClipQueries
        from kinodex.jobs.pictures import as_jpeg

        if self._clip_queries is None or self._clip_queries.space != space:
            self._clip_queries = ClipQueries(self.library, space)
        queries, plain = self._clip_queries, plain_query(words)
        embedder = embedder_key(self.library.uri, space.digest)
        if picture is None:
            return self.vectors.embedded(embedder, plain, queries.embed), space
        jpeg = as_jpeg(upright_pixels(picture))
        key = plain.encode() + b"\0" + jpeg
        return self.vectors.embedded(embedder, key, lambda _: queries.embed(plain, jpeg)), space

    def _clip_query_or_note(self, words: str, picture: Picture | None) -> tuple[Floats, Fingerprint] | None:
        """Return the same; None, with a reason in `clips_missing`, where the model cannot be had.

        The rest is then searched.
        """
        self.clips_missing = ""
        try:
            return self._clip_query(words, picture)
        except KinodexError as error:
            self.clips_missing = str(error)
            return None

    def _joined_by(self, request: Find, picture: Picture | None) -> Callable[[Hit], str]:
        """Say of hits if their vector is the `sum` of picture and words, or by the `model` itself; "" without both."""
        if picture is None or not request.query.strip():
            return lambda hit: ""
        space = self.library.visible.usual_space("clips")
        by_clips = "model" if space is not None and space.is_served else "sum"
        by_kind = {"frames": "sum", "clips": by_clips, "several": "sum"}
        return lambda hit: by_kind.get(hit.found_in, "")

    def _embed_words(self, words: str) -> Floats:
        return self.vectors.embedded(self._embedder, words, self._embed_text)

    def _embed_picture(self, picture: Picture) -> Floats:
        if is_vector(picture):
            return unit_vector(picture)
        pixels = upright_pixels(picture)

        def embed(_: bytes) -> Floats:
            tower = self._image_tower
            vector: Floats = tower.embed(tower.prepare(pixels)[None])[0]
            return vector

        return self.vectors.embedded(self._embedder, b"%d %b" % (pixels.shape[1], pixels.tobytes()), embed)

    @cached_property
    def _searched(self) -> Fingerprint:
        return self.fingerprint

    @cached_property
    def _embedder(self) -> str:
        return embedder_key(self.library.uri, self._searched.digest)

    @cached_property
    def _in_own_space(self) -> bool:
        return self._searched.digest == self.library.fingerprint.digest

    @cached_property
    def _text_tower(self) -> TextEmbedder:
        from kinodex.jobs.open import load_text_tower

        return load_text_tower(self.library, self.space)

    @cached_property
    def _image_tower(self) -> ImageEmbedder:
        from kinodex.jobs.open import load_image_tower

        return load_image_tower(self.library, self.space)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A stored frame that others are to be like."""

    video_id: str
    time_s: float
    vector: Floats

    def is_near(self, hit: Hit, gap_s: float) -> bool:
        return hit.video_id == self.video_id and abs(hit.time_s - self.time_s) < max(gap_s, 1e-6)


def _with_probability(hit: Hit, sigmoid: Sigmoid) -> Hit:
    """Return a hit in frames with the probability that its frame fits the words."""
    if hit.frame_no is None or hit.cosine is None:
        return hit
    return replace(hit, basis="probability", probability=sigmoid.probability(hit.cosine))
