"""An environment: all that an agent may ask of some videos of one library. No file, no label, no answer.

A video's vectors are read once and then searched in memory. Matches of pictures and of words have one scale, from 0 to
1, on which a match is worth the more the less chance explains it; the chapters at the end derive it.

Where a library holds no frames of a video, what is written of it (`words`) stands in their place: times, vectors,
searches and clusters are those of its captions, and only a picture cannot be had.

`LibraryVideos` reads the videos and caches what it read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsPictures
from kinodex.agent.protocol import EXACT_S, Anchor, Note, ShownFrame, Video, named_video
from kinodex.index.kinds import KINDS, LINE_KINDS, QUOTED_KINDS, KindName
from kinodex.index.terms import line_terms, query_terms

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import (
        ChapterRow,
        DetectionRow,
        FrameVectors,
        Hit,
        NoteRow,
        Scope,
        SegmentRow,
        StoredFrame,
        TextLine,
        VideoRow,
    )
    from kinodex.index.search.in_memory import InMemory
    from kinodex.index.sentences import Meaning

Floats = NDArray[np.float64]
SIMILARITY_MIDPOINT = 6.0
"""The deviation from the median that is calibrated to 0.5."""
SAME_DISTANCE_SHARE = 1.4826
"""Standard deviations in one median absolute deviation of a normal distribution."""
FLAT = 1e-6
"""A deviation of cosines below this is rounding."""
NO_MATCH = -np.inf
"""The deviation of what does not match at all."""
_NORMAL = NormalDist()
_LEAST_CHANCE = 1e-300
LIKELY = 0.5
"""The chance from which a match is no match, as a cosine is none below the median."""
STEP = 0.05
"""Surprises, in nats, are rounded to multiples of this."""
REMEMBERED_LINES = 65_536


# Videos of a library as an environment reads them: vectors are read, and texts embedded, once.

EmbedText = Callable[[list[str]], NDArray[np.float32]]
COSINES_CACHED = 256
"""Texts whose cosines with a video are cached: of hours of film, those of one text are some tens of kilobytes."""
MANY_VIDEOS = 1000
"""More than these are not named to a search where they are the whole library: a filter of 20,000 takes a second."""
MIN_GAP_S = 10.0
"""Between two frames of one video that count when videos are ranked."""


class LibraryVideos:
    """Some videos of one library, read in one of its spaces: the source of an environment."""

    def __init__(
        self,
        library: LibraryReader,
        rows: Sequence[VideoRow],
        embed_text: EmbedText,
        *,
        hide: Collection[KindName] = (),
        space: str | None = None,
    ) -> None:
        """`embed_text` is of `space`, the name or digest of one of `library.spaces()`; None is the library's own.

        Of kinds of lines to `hide`, it is as if there were none: `("speech",)` leaves the films silent.
        """
        self.uri = library.uri
        self.space = library.space(space)
        self.videos = tuple(Video(row.video_id, row.title, row.start_s, row.duration_s, row.frames > 0) for row in rows)
        self.index_frames = sum(row.frames for row in rows)
        self._library, self._rows, self._embed_text = library, tuple(rows), embed_text
        self._hidden = frozenset(hide)
        self._other_space = None if self.space.digest == library.fingerprint.digest else self.space.digest
        self._ids = frozenset(row.video_id for row in rows)
        self._in_memory: dict[str, InMemory] = {}
        self._words: dict[str, tuple[Note, ...]] = {}
        self._lines: dict[str, tuple[Note, ...]] = {}
        self._labels: dict[str, list[str]] = {}
        self._meanings: dict[str, Meaning | None] = {}
        self._line_vectors: dict[str, NDArray[np.float32]] = {}
        self._text_vectors: dict[str, NDArray[np.float32]] = {}
        self._cosines: dict[tuple[str, str], Floats] = {}

    def noise(self) -> str | None:
        return self._library.noise(self._other_space, self._ids)

    def only(self, video_ids: Collection[str]) -> LibraryVideos:
        rows = [row for row in self._rows if row.video_id in video_ids]
        return LibraryVideos(self._library, rows, self._embed_text, hide=self._hidden, space=self._other_space)

    def in_memory(self, video_id: str) -> InMemory:
        """The frames of a video, else its words in their place; raises `NeedsPictures` for a video without both."""
        if video_id not in self._in_memory:
            pictured = all(row.frames > 0 for row in self._rows if row.video_id == video_id)
            read = self._library.in_memory(video_id, self._other_space) if pictured else self._written(video_id)
            self._in_memory[video_id] = read
        return self._in_memory[video_id]

    def _written(self, video_id: str) -> InMemory:
        """The words of a video as frames are: numbered from 0, at the time at which each begins."""
        from kinodex.index.rows import FrameVectors
        from kinodex.index.search.in_memory import InMemory

        words = self.words(video_id)
        if not words:
            title = next(video.title for video in self.videos if video.video_id == video_id)
            hidden = "" if "speech" not in self._hidden else ", and its transcript is not to be read"
            raise NeedsPictures(
                f"the library holds neither frames nor captions of {title!r}{hidden}; ingest the "
                "video, or import captions of it"
            )
        in_own = self._other_space is None and self._library.has_caption_vectors  # of captions alone
        if words[0].source == "captions" and in_own:
            return InMemory.of(self._library.caption_vectors(video_id))
        times_s = np.array([note.start_s for note in words])
        vectors = self.embed_texts([note.text for note in words]).astype(np.float16)
        return InMemory.of(FrameVectors(np.arange(len(words), dtype=np.int32), times_s, vectors))

    def words(self, video_id: str) -> tuple[Note, ...]:
        """The captions of a video by the newest model that wrote any, else its transcript; in time order."""
        if video_id not in self._words:
            captions = tuple(note for note in self.lines(video_id) if note.source == "captions")
            said = tuple(note for note in self.lines(video_id) if note.source == "speech")
            self._words[video_id] = captions or said
        return self._words[video_id]

    def lines(self, video_id: str) -> tuple[Note, ...]:
        """Quote all lines of a video, of every kind that is not hidden, in the order of time."""
        if video_id not in self._lines:
            notes = [_quoted(line) for line in self._library.lines.rows(video_id, self._kinds)]
            self._lines[video_id] = tuple(sorted(notes, key=lambda note: note.start_s))
        return self._lines[video_id]

    def line_cosines(self, text: str, video_id: str) -> Floats | None:
        """Cosine of every line of a video with a text, NaN for one without a vector; None without a sentence model."""
        if text not in self._meanings:
            self._meanings[text] = self._library.sentences.meaning(text)
        meaning = self._meanings[text]
        if meaning is None:
            return None
        if video_id not in self._line_vectors:
            held = self._library.sentences.vectors(video_id, meaning.space)
            none = np.full(meaning.space.dim, np.nan, np.float32)
            found = {" ".join(line.split()): vector for line, vector in held.items()}
            # a line that names its speaker was embedded without the name
            texts = [line.text if line.text in found else line.text.partition(": ")[2] for line in self.lines(video_id)]
            rows = [found.get(text, none) for text in texts]
            self._line_vectors[video_id] = np.array(rows, np.float32).reshape(-1, meaning.space.dim)
        return (self._line_vectors[video_id] @ meaning.vector).astype(np.float64)

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._text_vectors]
        if new:
            self._text_vectors.update(zip(new, self._embed_text(new), strict=True))
        return np.stack([self._text_vectors[text] for text in texts])

    def cosines(self, text: str, video_id: str) -> Floats:
        key = (text, video_id)
        if key not in self._cosines:
            if len(self._cosines) >= COSINES_CACHED:
                self._cosines.pop(next(iter(self._cosines)))
            vector = self.embed_texts([text])[0]
            self._cosines[key] = self.in_memory(video_id).cosines(vector).astype(np.float64)
        return self._cosines[key]

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        return self._library.frames(video_id, frame_nos)

    def segments(self, video_id: str) -> list[SegmentRow]:
        return self._library.segments(video_id)

    def detections(
        self, video_id: str, start_s: float | None, end_s: float | None, label: str | None
    ) -> list[DetectionRow]:
        return self._library.detections(video_id, start_s, end_s, label)

    def detection_labels(self, video_id: str) -> list[str]:
        if video_id not in self._labels:
            self._labels[video_id] = self._library.detection_labels(video_id)
        return self._labels[video_id]

    def chapters(self, video_id: str) -> list[ChapterRow]:
        """Scenes and chapters of a video with titles and summaries, a chapter before its scenes; none without a model.

        Their texts were written from all lines of a video, so there are none where any kind of lines is hidden.
        """
        return [] if self._hidden else self._library.chapters.rows(video_id)

    def clips(self, video_id: str, model: str) -> list[NoteRow]:
        return self._library.notes.read(video_id, model)

    def add_clips(self, rows: Sequence[NoteRow]) -> None:
        """Keep captions of parts of videos in the library; raises a `LibraryError` where it cannot be written."""
        self._library.notes.add(rows)

    def search_words(self, text: str, k: int) -> list[Hit]:
        """Find the `k` lines that match a text best, by words and, if the library can, by meaning."""
        meaning = self._library.sentences.meaning(text)
        return self._known(self._library.search.words(text, self._scope, k, meaning=meaning, sources=self._kinds))

    def ranked(self, texts: Sequence[str], k: int, anchors_from: AnchorsFrom = "all") -> list[str]:
        """Videos by how well they match any of the texts, best first, by the `k` best matches of each text.

        Found by the library's indexes over all videos, so that the vectors of a large library are never all read.
        Pictures and words count by rank, since their scores do not compare here; without words, pictures by cosine.
        """
        best: dict[str, float] = {}
        for text in texts:
            for video_id, score in self._matches(text, k, anchors_from):
                best[video_id] = max(score, best.get(video_id, score))
        return sorted(best, key=lambda video_id: -best[video_id])

    def _matches(self, text: str, k: int, anchors_from: AnchorsFrom) -> Iterator[tuple[str, float]]:
        pictured = all(video.has_pictures for video in self.videos)
        words = [] if anchors_from == "frames" and pictured else self.search_words(text, k)
        frames: list[Hit] = []
        if anchors_from != "words" or not words:
            vector = self.embed_texts([text])[0]
            frames = self._known(self._library.search.frames(vector, self._scope, k, MIN_GAP_S, self._other_space))
        if not words:
            yield from ((hit.video_id, hit.score) for hit in frames)
        for hits in (words, frames) if words else ():
            yield from ((hit.video_id, -rank) for rank, hit in enumerate(hits))

    @property
    def _kinds(self) -> list[KindName]:
        return [kind for kind in LINE_KINDS if kind not in self._hidden]

    @cached_property
    def _scope(self) -> Scope:
        from kinodex.index.rows import Scope

        unnamed = len(self.videos) > MANY_VIDEOS and self._ids >= self._library.video_ids()
        return Scope() if unnamed else Scope(tuple(video.video_id for video in self.videos))

    def _known(self, hits: Sequence[Hit]) -> list[Hit]:
        """Leave out hits in videos that came into the library later."""
        return [hit for hit in hits if hit.video_id in self._ids]


def _quoted(line: TextLine) -> Note:
    """Quote a line, with the name of who says it; how surely it was read or heard is no doubt about the video."""
    text = f"{line.speaker}: {line.text}" if line.speaker else line.text
    confidence = None if KINDS[line.source].is_verbatim else line.confidence
    return Note(line.video_id, line.start_s, line.end_s, line.source, text, confidence)


# Matches of queries with all lines of a video.
#
# Each kind of line is judged by its own kind, in all videos that are searched: captions resemble any query about
# pictures more than speech does. Where the library has vectors of sentences, a line matches by the better of its words
# and its meaning. A line belongs to the frame on screen in the middle of its time.
#
# The papers search pictures alone (EEA, section 3.1, names a retriever of clips without its input) and leave open all
# of this.

AnchorsFrom = Literal["all", "frames", "words"]
"""Kinds of matches that lead a search to a frame: of its picture, of the words at its time, or the better of both."""
LEAST_LINES = 8
"""Fewer lines have no distribution by which a cosine could be judged."""


def frame_deviations(
    source: LibraryVideos, texts: Sequence[str], video_id: str, among: Sequence[str], times_s: Floats, places: int
) -> Floats:
    """Deviations [n, t] of the best line of each of the frames at `times_s` [n]; `NO_MATCH` for frames without one."""
    found = np.full((len(times_s), len(texts)), NO_MATCH)
    lines = source.lines(video_id)
    if lines and len(times_s):
        np.maximum.at(found, frames_of(lines, times_s), line_deviations(source, texts, video_id, among, places))
    return found


def frames_of(lines: Sequence[Note], times_s: Floats) -> NDArray[np.intp]:
    middles_s = np.array([(line.start_s + line.end_s) / 2 for line in lines])
    return np.maximum(np.searchsorted(times_s, middles_s + EXACT_S, side="right") - 1, 0)


def line_deviations(
    source: LibraryVideos,
    texts: Sequence[str],
    video_id: str,
    among: Sequence[str],
    places: int,
    least_cosine: float = -1.0,
) -> Floats:
    """Deviations [n, t] of the lines of a video in order, judged by those of all videos `among` which it is.

    By its meaning a line counts from `least_cosine` on.
    """
    lines = source.lines(video_id)
    found = np.full((len(lines), len(texts)), NO_MATCH)
    videos = list(dict.fromkeys([video_id, *among]))
    for kind in dict.fromkeys(line.source for line in lines):
        here = [at for at, line in enumerate(lines) if line.source == kind]
        known = [line.text for each in videos for line in source.lines(each) if line.source == kind]
        own = [lines[at].text for at in here]
        by_words = [word_deviations(text, own, known, places) for text in texts]
        found[here] = np.stack(by_words, axis=1)
        if (
            len(known) >= LEAST_LINES
            and (by_meaning := _meanings(source, texts, videos, kind, least_cosine)) is not None
        ):
            low = deviation_of_chance(min(LIKELY, places / len(known)))
            by_meaning[by_meaning < low] = NO_MATCH
            found[here] = np.maximum(found[here], by_meaning[: len(here)])
    return found


def _meanings(
    source: LibraryVideos, texts: Sequence[str], videos: Sequence[str], kind: str, least_cosine: float
) -> Floats | None:
    """Deviations by meaning of the lines of a kind, those of the first video first; None without vectors of all."""
    cosines = []
    for video_id in videos:
        lines, compared = source.lines(video_id), [source.line_cosines(text, video_id) for text in texts]
        if lines and any(each is None for each in compared):
            return None
        rows = [at for at, line in enumerate(lines) if line.source == kind]
        cosines += [np.stack([each[rows] for each in compared if each is not None], axis=1)] if rows else []
    known = np.concatenate(cosines)
    if np.isnan(known).any():
        return None
    return np.where(known >= least_cosine, robust_deviations(known, known), NO_MATCH)


PLACES = 16
"""A match of words counts if chance would find fewer lines that are as good."""
Detect = Callable[[Sequence[ShownFrame], str], "list[DetectionRow] | None"]
"""Finds a label in frames of one video, in time order, and follows it from frame to frame; None: an unknown label.
An empty label is everything that the detector knows."""


@dataclass(eq=False)
class Environment:
    """A library's videos as an agent sees them. Times are those that a player shows, in seconds."""

    source: LibraryVideos
    detect: Detect | None = None
    """A detector, if there is one; `kinodex.agent.tools.detection` asks it for what the library does not hold."""
    keep_captions: bool = True
    """True if captions that an agent has made are kept in the library, and those kept there are read."""
    unsaved_captions: dict[tuple[str, str, str], NoteRow | None] = field(default_factory=dict)
    """By video, model and part: captions that the library could not keep, and None where none could be had."""
    videos: tuple[Video, ...] = field(init=False)
    index_frames: int = field(init=False)
    space: str = field(init=False)

    def __post_init__(self) -> None:
        self.videos, self.index_frames = self.source.videos, self.source.index_frames
        self.space = str(self.source.space)

    @classmethod
    def of(
        cls,
        library: LibraryReader,
        videos: Sequence[VideoRow],
        embed_text: EmbedText,
        detect: Detect | None = None,
        *,
        hide: Collection[KindName] = (),
        space: str | None = None,
    ) -> Self:
        """Make an environment of these videos of a library; the arguments are those of `LibraryVideos`."""
        source = LibraryVideos(library, videos, embed_text, hide=hide, space=space)
        return cls(source, detect)

    @classmethod
    def open(
        cls, library: LibraryReader | str, *videos: str, detect: Detect | None = None, space: str | None = None
    ) -> Self:
        """Open the videos of these names and globs (none: all) of a library, or of the one at this place.

        Loads the text tower of `space`, by name or digest; None is the library's own. Raises a `LibraryError` or
        `SpaceError`.
        """
        from kinodex.index.library import Library

        opened = Library.open(library) if isinstance(library, str) else library
        rows = opened.videos_named(videos) or opened.videos()
        return cls.of(opened, rows, opened.load_space(space, "text").embed_text, detect, space=space)

    def only(self, video_ids: Collection[str]) -> Environment:
        """The same environment with the videos of these ids alone."""
        return replace(self, source=self.source.only(video_ids))

    def without_shared_captions(self) -> Environment:
        """The same videos for one question alone: captions made for other questions are neither read nor kept.

        The caches of the source are shared.
        """
        return replace(self, keep_captions=False, unsaved_captions={})

    def nearest(
        self, texts: Sequence[str], count: int, keep: Collection[str] = (), anchors_from: AnchorsFrom = "all"
    ) -> Environment:
        """The `count` videos whose frames or words match the texts best, and those of `keep`; itself if it has no more.

        Of a video without frames, its captions and transcript are matched in any case.
        """
        if len(self.videos) <= count:
            return self
        ranked = self.source.ranked(texts, 4 * count, anchors_from)
        chosen = ranked[:count]
        chosen += [video.video_id for video in self.videos if video.video_id not in ranked][: count - len(chosen)]
        return self.only({*chosen, *keep})

    def video(self, name: str | None = None) -> Video:
        """The video that a model means by an id, the first digits of one, or a title; None is the only video.

        Raises `InvalidReply`, which says what videos there are.
        """
        return named_video(self.videos, name)

    def pictured(self, video_id: str) -> bool:
        """True if the library holds frames of a video, not words alone."""
        return all(video.has_pictures for video in self.videos if video.video_id == video_id)

    @property
    def has_pictures(self) -> bool:
        """True if the library holds frames of any of the videos."""
        return any(video.has_pictures for video in self.videos)

    def vectors(self, video_id: str) -> FrameVectors:
        """All frame vectors of a video, in time order; raises `NeedsPictures` for a video without frames and words."""
        return self.source.in_memory(video_id).stored

    def times(self, video_id: str) -> Floats:
        """Times of the stored frames of a video, ascending."""
        return self.vectors(video_id).time_s

    def embed_text(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.source.embed_texts([text])[0]
        return vector

    def cosines(self, text: str, video_id: str) -> Floats:
        """Cosine of every stored frame of a video with a text, in time order."""
        return self.source.cosines(text, video_id)

    def deviations(self, texts: Sequence[str], video_id: str, among: Sequence[str] = ()) -> Floats:
        """Robust deviations [n, t] by which each frame matches each text better than the median frame does.

        The texts are judged on one scale, their mean deviation, so that the matches of alternatives compare. Median
        and scale are those of the video, or of all videos `among` which it is, so that matches in several compare.
        """
        cosines = self._all_cosines(texts, video_id)
        known = np.concatenate([self._all_cosines(texts, each) for each in among]) if among else cosines
        return robust_deviations(cosines, known)

    def matches(
        self, texts: Sequence[str], video_id: str, among: Sequence[str], anchors_from: AnchorsFrom, places: int = PLACES
    ) -> tuple[Floats, Floats]:
        """Deviations [n, t] of each frame's picture, and of the best line at its time, from each text.

        `NO_MATCH` is for the kind that `anchors_from` leaves out, and for frames without a line, or with one as which
        chance would find `places` others.
        """
        times_s = self.times(video_id)
        nothing = np.full((len(times_s), len(texts)), NO_MATCH)
        pictures = nothing if anchors_from == "words" else self.deviations(texts, video_id, among)
        if anchors_from == "frames":
            return pictures, nothing
        return pictures, frame_deviations(self.source, texts, video_id, among, times_s, places)

    def _all_cosines(self, texts: Sequence[str], video_id: str) -> Floats:
        self.source.embed_texts(texts)  # all at once, not one by one
        return np.stack([self.cosines(text, video_id) for text in texts], axis=1)

    def search(
        self,
        texts: Sequence[str],
        video_id: str,
        k: int,
        min_gap_s: float,
        among: Sequence[str] = (),
        anchors_from: AnchorsFrom = "all",
    ) -> list[Anchor]:
        """Find the `k` frames of a video that match each text best, no two closer than `min_gap_s`, best first.

        A frame matches by its picture or by a line at its time, whichever is less likely by chance; `anchors_from`
        may leave one out.
        """
        from kinodex.index.search.held_rows import top_positions

        stored, found = self.vectors(video_id), []
        pictures, words = self.matches(texts, video_id, among, anchors_from, k)
        similarities = calibrate(np.maximum(pictures, words))
        for which, text in enumerate(texts):
            for at in top_positions(similarities[:, which], stored.time_s, k, min_gap_s):
                place = video_id, int(stored.frame_no[at]), float(stored.time_s[at])
                by_words = bool(words[at, which] > max(0.0, pictures[at, which]))
                found.append(Anchor(*place, float(similarities[at, which]), text, by_words))
        return found

    def words(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> tuple[Note, ...]:
        """Captions of a video, else lines of its transcript, that begin in [start_s, end_s), in order."""
        low, high = _range(start_s, end_s)
        lines, start = self.source.words(video_id), attrgetter("start_s")
        return lines[bisect_left(lines, low, key=start) : bisect_left(lines, high, key=start)]

    def search_words(self, text: str, k: int) -> list[Hit]:
        """Find the `k` lines of any kind that match a text best."""
        return self.source.search_words(text, k)

    def chapters(self, video_id: str) -> list[ChapterRow]:
        """Scenes and chapters with titles and summaries, a chapter before its scenes; none if none were written."""
        return self.source.chapters(video_id)

    def lines(
        self, video_id: str, kinds: Collection[str], start_s: float | None = None, end_s: float | None = None
    ) -> tuple[Note, ...]:
        """Quote the lines of some kinds that share some time with [start_s, end_s), in the order of time."""
        low, high = _range(start_s, end_s)
        lines = (line for line in self.source.lines(video_id) if line.source in kinds)
        return tuple(line for line in lines if line.end_s > low and line.start_s < high)

    def quoted(self, video_id: str, start_s: float, end_s: float) -> tuple[Note, ...]:
        """Quote the lines that go with frames of [start_s, end_s): what is said and stands on screen meanwhile."""
        return self.lines(video_id, QUOTED_KINDS, start_s, end_s)

    def segments(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[SegmentRow]:
        """The library's segments that share some time with [start_s, end_s), in order, with captions if it has any."""
        low, high = _range(start_s, end_s)
        return [each for each in self.source.segments(video_id) if each.end_s > low and each.start_s < high]

    def captions(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> tuple[Note, ...]:
        """Captions by `kinodex add captions` of segments that share some time with [start_s, end_s), in order."""
        return self.lines(video_id, ("captions",), start_s, end_s)

    def detections(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None, label: str | None = None
    ) -> list[DetectionRow]:
        """Detections by `kinodex add detections` at times in [start_s, end_s), in order; of one label or all."""
        return self.source.detections(video_id, start_s, end_s, label)

    def detection_labels(self, video_id: str | None = None) -> tuple[str, ...]:
        """Labels of the library's detections in a video, else in any of the videos, the most frequent first."""
        ids = [video.video_id for video in self.videos] if video_id is None else [video_id]
        return tuple(dict.fromkeys(label for each in ids for label in self.source.detection_labels(each)))

    def frames(self, video_id: str, times_s: Sequence[float] | Floats) -> tuple[ShownFrame, ...]:
        """The stored frames of a video nearest to some times, with pictures, in time order, each once."""
        if len(times_s) == 0:
            return ()
        stored = self.vectors(video_id)
        nearest = {int(np.argmin(np.abs(stored.time_s - time_s))) for time_s in times_s}
        return self.frames_numbered(video_id, [int(stored.frame_no[at]) for at in sorted(nearest)])

    def frames_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[ShownFrame, ...]:
        """The frame on screen in the middle of each of `count` equal parts of [start_s, end_s), each once.

        Fewer than `count` where the picture stands still; the first may then be of a time before `start_s`.
        """
        return self.frames_numbered(video_id, self.numbers_between(video_id, start_s, end_s, count))

    def numbers_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[int, ...]:
        """The numbers of the frames of `frames_between`."""
        at = self._between(video_id, start_s, end_s, count)
        return tuple(int(number) for number in self.vectors(video_id).frame_no[at])

    def times_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[float, ...]:
        """The times of the frames of `frames_between`, or of the words in their place."""
        at = self._between(video_id, start_s, end_s, count)
        return tuple(float(time_s) for time_s in self.times(video_id)[at])

    def _between(self, video_id: str, start_s: float, end_s: float, count: int) -> NDArray[np.intp]:
        middles_s = start_s + (end_s - start_s) * (np.arange(count) + 0.5) / count
        at = np.searchsorted(self.times(video_id), middles_s + EXACT_S, side="right") - 1
        return np.unique(np.maximum(at, 0))

    def frames_numbered(self, video_id: str, frame_nos: Sequence[int]) -> tuple[ShownFrame, ...]:
        """Stored frames by their numbers, with pictures, in the order of the numbers given; raises `NeedsPictures`."""
        if not self.pictured(video_id):
            raise NeedsPictures(f"the library holds no frames of {self.video(video_id).title!r}; ingest the video")
        return tuple(
            ShownFrame(row.video_id, row.frame_no, row.time_s, row.width_px, row.height_px, row.jpeg)
            for row in self.source.frames(video_id, frame_nos)
        )

    def shown_range(self, frame: ShownFrame) -> tuple[float, float]:
        """The time that a stored frame stands for: until the next one, or the video's end."""
        return frame.time_s, self.shown_until(frame.video_id, frame.time_s)

    def shown_until(self, video_id: str, time_s: float) -> float:
        """The time at which the picture on screen at `time_s` gives way to the next stored frame, or the video ends."""
        times = self.times(video_id)
        later = times[times > time_s]
        end_s = next(video.end_s for video in self.videos if video.video_id == video_id)
        return float(later[0]) if len(later) else end_s


def _range(start_s: float | None, end_s: float | None) -> tuple[float, float]:
    return -math.inf if start_s is None else start_s, math.inf if end_s is None else end_s


# One scale for all matches: deviations from what is usual in a video, and similarities from 0 to 1.
#
# A cosine of 0.3 is a match in one space and noise in another, and a score of words means nothing beside either. So
# every match is measured by how rare it is. Of vectors it is the deviation `z` from the median of the query over the
# video, in robust standard deviations: chance reaches 3.5 once in a few thousand frames. A match of words has a
# probability to occur by chance (`word_deviations`), and the deviation that a normal distribution exceeds as rarely.
#
# A similarity is `z / (z + 6)`, 0 at and below the median: the best of a few thousand unrelated frames gets 0.37, one
# that stands out (z = 12) 0.67. It has no upper end at which strong matches would become equal.


def robust_deviations(cosines: Floats, known: Floats) -> Floats:
    """Deviations [n, t] of cosines from the median of those `known` [m, t], in their robust standard deviations.

    The `t` queries have one scale, their mean: with a scale each, a weak match of a query that resembles few frames
    would beat a strong match of one that resembles many. All are 0 where nothing differs.
    """
    middle = np.median(known, axis=0)
    scale = SAME_DISTANCE_SHARE * float(np.median(np.abs(known - middle), axis=0).mean())
    scale = scale if scale >= FLAT else float(known.std(axis=0).mean())
    return (cosines - middle) / scale if scale >= FLAT else np.zeros_like(cosines)


def deviation_of_chance(chance: float) -> float:
    """The deviation that a normal distribution exceeds with this probability."""
    return NO_MATCH if chance >= 1.0 else -_NORMAL.inv_cdf(max(chance, _LEAST_CHANCE))


def calibrate(deviations: Floats, midpoint: float = SIMILARITY_MIDPOINT) -> Floats:
    """Map deviations to similarities from 0 to 1, `midpoint` to 0.5."""
    above = np.maximum(deviations, 0.0)
    calibrated: Floats = above / (above + midpoint)
    return calibrated


# Matches of a query's words with lines, each as rare as it is by chance.
#
# If the words of a query fell into lines independently, each as often as it does, a line would hold a given set of them
# with the product of their rates: its surprise is the sum of the words' log rarities, which is also what BM25 adds up
# for a line of usual length. The chance of a line is the probability that such a line holds words at least as
# surprising. It grows with the number of words that a query has, so that a long question is not found in every line.
#
# A lone common word is nothing: a line counts only if it is less likely than not, and if fewer lines would match as
# well by chance than there are places (`places`), as for the best frames of a video, of which so many are taken
# whatever they show.
#
# No stemming, and words are cut as the library's search cuts them (`kinodex.index.terms`). Repeated words count once,
# and a long line is no different from a short one.


@lru_cache(REMEMBERED_LINES)
def words_of(text: str) -> frozenset[str]:
    """Return the different terms by which a search finds a line."""
    return frozenset(line_terms(text))


def word_deviations(query: str, lines: Sequence[str], known: Sequence[str], places: int) -> Floats:
    """Deviations [n] by which lines match a query's words; `NO_MATCH` for those that share none that tell.

    Rates of words are those of the lines `known`, among which `lines` are.
    """
    query_words = frozenset(query_terms(query))
    counts = Counter(word for line in known for word in query_words & words_of(line))
    rates = {word: (count + 0.5) / (len(known) + 1) for word, count in counts.items()}
    surprise = {word: round(-math.log(rate) / STEP) for word, rate in rates.items()}
    tail = _chances(surprise.values())
    found = np.full(len(lines), NO_MATCH)
    for at, line in enumerate(lines):
        chance = tail[sum(surprise.get(word, 0) for word in query_words & words_of(line))]
        if chance < LIKELY and chance * len(known) < places:
            found[at] = deviation_of_chance(chance)
    return found


def _chances(surprises: Iterable[int]) -> Floats:
    spread = np.ones(1)
    for steps in surprises:
        held, rate = np.zeros(len(spread) + steps), math.exp(-STEP * steps)
        held[steps:] = spread * rate
        held[: len(spread)] += spread * (1.0 - rate)
        spread = held
    chances: Floats = np.minimum(np.cumsum(spread[::-1])[::-1], 1.0)
    return chances
