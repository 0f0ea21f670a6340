"""Find moments of a library by words, by a picture or by both: the one search of Python, command line, HTTP and MCP.

finder = Finder(Library.open("lib"))
hits = finder.find(Query("a red boat", where="pictures", k=3))
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import KinodexError
from kinodex.index.rows import Hit, Scope
from kinodex.index.search.fusion import fuse, suppress_neighbours
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

    from kinodex.index.library import LibraryReader
    from kinodex.index.sentences import Meaning
    from kinodex.index.spaces.towers import Fingerprint, ImageEmbedder, Sigmoid, TextEmbedder

Where = Literal["all", "pictures", "clips", "words", "speech", "screen-text", "captions", "chapters", "detections"]
WHERE: tuple[Where, ...] = get_args(Where)
"""Where to look. "pictures" by meaning; "clips", windows of some seconds, by meaning; "speech" by words; "screen-text"
by words, typos forgiven; "captions" by words and meaning; "words" is all three, by words and, after `kinodex add
sentences`, by meaning; "all" is pictures, clips and words. "chapters" by their texts, "detections" by label."""
LONGEST_TEXT = 2000
"""Characters of a query from a client; no text tower reads more."""
LONGEST_QUESTION = 20_000
"""Characters of a question from a client."""
MOST_VIDEOS = 1000
"""Videos that a client may name."""
BY_VECTOR = ("all", "pictures", "captions")
"""Places whose hits the space ranks."""
FOR_PICTURES = ("all", "pictures", "clips")
"""Places where a picture can be looked for."""
OLDER_WHERE: dict[str, Where] = {
    "both": "all",
    "together": "all",
    "hybrid": "all",
    "frames": "pictures",
    "transcript": "speech",
    "text": "screen-text",
}
"""Spellings of version 2, by which each face may still be asked."""
FOUND_IN = {
    "frame": "pictures",
    "transcript": "speech",
    "text": "screen-text",
    "caption": "captions",
    "chapter": "chapters",
    "detection": "detections",
    "extract": "extracts",
    "clip": "clips",
    "both": "several",
}
"""The word of `Where` for the `source` of a hit; "several" for one that several searches found."""
ADDED_BY = {
    "clips": "clips",
    "speech": "speech",
    "screen-text": "text",
    "captions": "captions",
    "chapters": "summaries",
    "detections": "detections",
}
"""Stage that fills what is searched there, by its stored name; `kinodex add` calls it as `Where` does."""

Floats = NDArray[np.floating[Any]]
Picture: TypeAlias = "bytes | Path | Image | NDArray[Any]"
"""A file's content or place, a PIL picture, RGB `[height, width, 3]` of uint8, or a vector `[dim]` of the space."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search for the `k` best moments of `[start_s, end_s)` in some videos, or all, by words, a picture or both.

    `videos` are named as `Library.videos_named` takes them. A picture alone is looked for in pictures; words beside it
    are joined with it there, and looked for as words. Hits of one video are `min_gap_s` apart; `min_score` is the least
    of a detection, whose label the words are. Only videos are searched for which the `condition` holds.
    """

    words: str = ""
    picture: Picture | None = None
    where: str = "all"
    videos: Sequence[str] = ()
    start_s: float | None = None
    end_s: float | None = None
    k: int = 10
    min_gap_s: float = 2.0
    min_score: float = 0.0
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The hits of each search that "all" joins."""

    pictures: list[Hit]
    clips: list[Hit]
    speech: list[Hit]
    captions: list[Hit]
    screen_text: list[Hit]


class Finder:
    """Searches of an open library in one of its spaces (None: its own); towers are loaded at the first need.

    `embed_text` and `meaning_of` take the place of the library's own, for who loads towers otherwise. Vectors of words
    and pictures are kept by the process (`kept_vector`).
    """

    def __init__(
        self,
        library: LibraryReader,
        space: str | None = None,
        *,
        embed_text: Callable[[str], Floats] | None = None,
        meaning_of: Callable[[str], Meaning | None] | None = None,
    ) -> None:
        self.library = library
        self.space = space
        self.clips_missing = ""
        """Why the last search of all went without the clips that there are; empty where it did not."""
        self._embed_text = embed_text or (lambda text: self._text_tower.embed_text([text])[0])
        self._meaning_of = meaning_of or library.sentences.meaning

    def find(self, query: Query, rerank: str | None = None) -> list[Hit]:
        """The hits, best first, with `rerank` in the order of the reranker at that address.

        Raises UsageError, QueryError, SpaceError or UnknownVideo, and as `kinodex.jobs.rerank.reranked` does.
        """
        if rerank is None:
            return self.find_parts(query)[0]
        from kinodex.jobs.rerank import compared, rerank_address, reranked

        rerank_address(rerank)
        hits = self.find(replace(query, k=compared(query.k)))
        return reranked(self.library, query.words, hits, rerank)[: query.k]

    def find_parts(self, query: Query) -> tuple[list[Hit], Parts | None]:
        """The hits, and of a search everywhere what it joined; raises as `find` does."""
        where = checked_where(query, self.library)
        among = self.library.where(query.condition)
        ids = among.ids_named(query.videos)
        hits, parts = self._found(among, query, where, ids)
        noise = among.noise(self.space, ids) if hits and where in BY_VECTOR else None
        if noise is None and query.picture is None and where in ("all", "pictures"):
            sigmoid = self.library.sigmoid(self.library.space(self.space), query.words)
            hits = [_with_probability(hit, sigmoid) for hit in hits] if sigmoid else hits
        from kinodex.index.metadata import shown_at

        videos = {video_id: self.library.video(video_id) for video_id in {hit.video_id for hit in hits}}
        columns, how = self.library.metadata.of(list(videos)), self._joined_by(query)

        def told(hit: Hit) -> Hit:
            video = videos[hit.video_id]
            recorded_at = shown_at(columns.get(hit.video_id, {}), video, hit.time_s)
            return replace(hit, noise=noise, title=video.title, query=how(hit), recorded_at=recorded_at)

        return [told(hit) for hit in hits], parts

    def _found(
        self, among: LibraryReader, query: Query, where: str, ids: tuple[str, ...] | None
    ) -> tuple[list[Hit], Parts | None]:
        scope, search = Scope(ids, query.start_s, query.end_s), among.search
        limits = scope, query.k, query.min_gap_s
        match where:
            case "pictures":
                return search.frames(self.embed(query.words, query.picture), *limits, self.space), None
            case "clips":
                found = self._clip_query(query)
                return ([] if found is None else search.clips(found[0], found[1], *limits)), None
            case "words":
                meaning = self._meaning_of(query.words)
                return search.words(query.words, *limits, meaning and meaning.every()), None
            case "speech":
                return search.transcript(query.words, *limits), None
            case "screen-text":
                return search.screen_text(query.words, *limits), None
            case "captions":  # they have vectors in the library's own space alone
                vector = self.embed(query.words) if self._in_own_space else None
                return search.captions(query.words, vector, *limits), None
            case "chapters":
                return search.chapters(query.words, scope, query.k), None
            case "detections":
                return search.detections(query.words, query.min_score, *limits), None
        if where not in WHERE:
            return search.extract(where, query.words, *limits), None
        vector, meaning = self.embed(query.words, query.picture), self._meaning_of(query.words)
        wider = scope, 4 * query.k, query.min_gap_s
        parts = Parts(
            *search.by_each(query.words, vector, *wider, self.space, meaning, self._clip_query_or_note(query))
        )
        joined = fuse(parts.pictures, parts.clips, parts.speech, parts.captions, parts.screen_text, query=query.words)
        return suppress_neighbours(joined, query.min_gap_s)[: query.k], parts

    def embed(self, words: str = "", picture: Picture | None = None) -> Floats:
        """The unit vector `[dim]` of words, of a picture, or of both, each of which counts a half."""
        if picture is None:
            return self._embed_words(words)
        seen = self._embed_picture(picture)
        if not words.strip():
            return seen
        both = seen + self._embed_words(words)
        vector: Floats = (both / np.linalg.norm(both)).astype(np.float32)
        return vector

    def _clip_query(self, query: Query) -> tuple[Floats, Fingerprint] | None:
        """A query as the vector of the model of the clips, and that model; None where there are no clips."""
        space = self.library.visible.usual_space("clips")
        if space is None or is_vector(query.picture):
            return None
        from kinodex.jobs.clip_models import ClipQueries
        from kinodex.jobs.pictures import as_jpeg

        queries, words = ClipQueries(self.library, space), plain_query(query.words)
        embedder = embedder_key(self.library.uri, space.digest)
        if query.picture is None:
            return kept_vector(embedder, words, queries.embed), space
        jpeg = as_jpeg(upright_pixels(query.picture))
        return kept_vector(embedder, words.encode() + b"\0" + jpeg, lambda _: queries.embed(words, jpeg)), space

    def _clip_query_or_note(self, query: Query) -> tuple[Floats, Fingerprint] | None:
        """The same; None, with a reason in `clips_missing`, where the model cannot be had: the rest is searched."""
        self.clips_missing = ""
        try:
            return self._clip_query(query)
        except KinodexError as error:
            self.clips_missing = str(error)
            return None

    def _joined_by(self, query: Query) -> Callable[[Hit], str]:
        """Say of hits if their vector is the `sum` of picture and words, or by the `model` itself; "" without both."""
        if query.picture is None or not query.words.strip():
            return lambda hit: ""
        space = self.library.visible.usual_space("clips")
        by_clips = "model" if space is not None and space.is_served else "sum"
        by_source = {"frame": "sum", "clip": by_clips, "both": "sum"}
        return lambda hit: by_source.get(hit.source, "")

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """The unit vectors `[n, dim]` of texts; those that are not kept are embedded together, by the tower."""
        new = [text for text in dict.fromkeys(map(plain_query, texts)) if held_vector(self._embedder, text) is None]
        made = dict(zip(new, self._text_tower.embed_text(new), strict=True)) if new else {}
        for text, vector in made.items():
            keep_vector(self._embedder, text, vector)
        return np.stack([made[each] if each in made else self._embed_words(each) for each in map(plain_query, texts)])

    def missing(self, where: str) -> str | None:
        """The stage that never ran, where nothing can be found for that reason; else None."""
        stage = ADDED_BY.get(OLDER_WHERE.get(where, where))
        if stage is None or stage == "speech" or any(added.stage == stage for added in self.library.info().added):
            return None
        return stage

    def _embed_words(self, words: str) -> Floats:
        return kept_vector(self._embedder, words, self._embed_text)

    def _embed_picture(self, picture: Picture) -> Floats:
        if is_vector(picture):
            return unit_vector(picture)
        pixels = upright_pixels(picture)

        def embed(_: bytes) -> Floats:
            tower = self._image_tower
            vector: Floats = tower.embed(tower.prepare(pixels)[None])[0]
            return vector

        return kept_vector(self._embedder, b"%d %b" % (pixels.shape[1], pixels.tobytes()), embed)

    @cached_property
    def _digest(self) -> str:
        from kinodex.jobs.open import find_space

        return find_space(self.library, self.space).digest

    @cached_property
    def _embedder(self) -> str:
        return embedder_key(self.library.uri, self._digest)

    @cached_property
    def _in_own_space(self) -> bool:
        return self._digest == self.library.fingerprint.digest

    @cached_property
    def _text_tower(self) -> TextEmbedder:
        from kinodex.jobs.open import load_text_tower

        return load_text_tower(self.library, self.space)

    @cached_property
    def _image_tower(self) -> ImageEmbedder:
        from kinodex.jobs.open import load_image_tower

        return load_image_tower(self.library, self.space)


VECTORS_KEPT = 1024
"""Vectors of queries that a process keeps, a few kilobytes each: who types and deletes comes back to most."""
_vectors: OrderedDict[tuple[str, str | bytes], Floats] = OrderedDict()
_keeping = Lock()
Asked = TypeVar("Asked", str, bytes)


def embedder_key(uri: str, digest: str) -> str:
    """The key under which the towers of a space in a library, and their vectors of queries, are kept in a process.

    Libraries carry their own towers, and one may lie about the space of its tower: only the built-in ones are shared.
    """
    from kinodex.index.store.carried_towers import builtin_tower

    return digest if builtin_tower(digest, "text") else f"{digest} {uri}"


def kept_vector(embedder: str, query: Asked, embed: Callable[[Asked], Floats]) -> Floats:
    """The vector of words, or of a picture by its bytes, by the embedder of this key, embedded once in a process.

    Words are the same whatever lies between them, and however their accents are written.
    """
    asked = query if isinstance(query, bytes) else plain_query(query)
    held = held_vector(embedder, asked)
    return keep_vector(embedder, asked, embed(asked)) if held is None else held


def held_vector(embedder: str, query: str | bytes) -> Floats | None:
    """The vector of a query that this process embedded before; None if it is not kept."""
    key = _key(embedder, query)
    with _keeping:
        if key in _vectors:
            _vectors.move_to_end(key)
        return _vectors.get(key)


def keep_vector(embedder: str, query: str | bytes, vector: Floats) -> Floats:
    """Keep the vector of a query in the place of the one that was longest not asked for."""
    kept = np.array(vector)
    kept.flags.writeable = False  # it is everybody's
    with _keeping:
        _vectors[_key(embedder, query)] = kept
        if len(_vectors) > VECTORS_KEPT:
            _vectors.popitem(last=False)
    return kept


def plain_query(words: str) -> str:
    """Words with single spaces and composed accents."""
    return unicodedata.normalize("NFC", " ".join(words.split()))


def _key(embedder: str, query: str | bytes) -> tuple[str, str | bytes]:
    return embedder, hashlib.sha256(query).digest() if isinstance(query, bytes) else plain_query(query)


def is_vector(picture: Picture | None) -> TypeGuard[Floats]:
    """True for a vector of the space in the place of a picture."""
    return isinstance(picture, np.ndarray) and picture.ndim == 1


def _with_probability(hit: Hit, sigmoid: Sigmoid) -> Hit:
    """A hit in pictures with the probability that its frame fits the words."""
    if hit.frame_no is None or hit.cosine is None:
        return hit
    return replace(hit, basis="probability", probability=sigmoid.probability(hit.cosine))


def checked_where(query: Query, library: LibraryReader | None = None) -> str:
    """Where a query is looked for; raises UsageError for one that makes no sense there."""
    where = known_where(query.where, library)
    if query.picture is None:
        if not query.words.strip():
            raise UsageError("got an empty query; give some words to look for, or a picture")
        return where
    if where not in FOR_PICTURES:
        raise UsageError(f"got a picture to look for in {where}; they are looked for in pictures, in clips, or in all")
    if where == "clips" and is_vector(query.picture):
        raise UsageError("got a vector to look for in clips, which another model made; give a picture, or words")
    return where if where == "clips" or query.words.strip() else "pictures"


def known_where(name: str, library: LibraryReader | None = None) -> str:
    """The place of a name, which may be one of version 2, or written with `_`, or an extract of the library.

    Raises UsageError for any other.
    """
    plain = name.replace("_", "-")
    found = next((each for each in WHERE if each == plain), OLDER_WHERE.get(plain))
    if found is not None:
        return found
    extracts = [] if library is None else library.extracts.versions()
    if not any(name in (each.name, each.key) for each in extracts):
        places = (*WHERE, *dict.fromkeys(each.name for each in extracts))
        raise UsageError(f"got {name!r} for where to look; it is one of {', '.join(places)}")
    return name


def ground_where(name: str) -> Literal["both", "pictures", "words"]:
    """The evidence that `jobs.ground` takes, of a name of `Where`; raises UsageError."""
    match OLDER_WHERE.get(name, name):
        case "all":
            return "both"
        case "pictures" | "words" as found:
            return found
    raise UsageError(f"got {name!r} for where to look; it is one of all, pictures, words")


def upright_pixels(picture: Any) -> NDArray[np.uint8]:
    """RGB `[height, width, 3]` of a picture, turned as its camera was held, which a photograph's EXIF says."""
    from kinodex.jobs.pictures import decoded, read_picture, upright

    if isinstance(picture, bytes):
        return read_picture(picture)
    if isinstance(picture, Path):
        return decoded(picture)
    pixels = upright(picture) if hasattr(picture, "convert") else np.asarray(picture)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise UsageError(
            f"got an array of {pixels.dtype} {list(pixels.shape)}; give a text, a picture as uint8 "
            "[height, width, 3], or a vector [dim]"
        )
    return pixels


def unit_vector(values: NDArray[Any]) -> Floats:
    """A vector `[dim]` of length 1; raises UsageError for one without a direction."""
    if values.dtype.kind not in "fiu":
        raise UsageError(f"got a vector of {values.dtype}; give real numbers")
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0.0:
        raise UsageError("got a vector of length 0, or one that holds NaN or infinity; give numbers")
    vector: Floats = (values / length).astype(np.float32)
    return vector
