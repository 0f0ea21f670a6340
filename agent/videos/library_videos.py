"""Videos of a library as an environment reads them: vectors are read, and texts embedded, once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsPictures
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Video
from kinodex.agent.videos.scale import Floats
from kinodex.index.kinds import KINDS, LINE_KINDS, KindName

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import (
        ChapterRow,
        DetectionRow,
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

EmbedText = Callable[[list[str]], NDArray[np.float32]]
COSINES_CACHED = 256
"""Texts whose cosines with a video are cached: of hours of film, those of one text are some tens of kilobytes."""
MANY_VIDEOS = 1000
"""More than these are not named to a search where they are the whole library: a filter of 20,000 takes a second."""
MIN_GAP_S = 10.0
"""Between two frames of one video that count when videos are ranked."""


class FrameTimes(NamedTuple):
    """The stored frames of a video in time order, without their vectors."""

    frame_no: NDArray[np.int32]
    time_s: Floats


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
        self._times: dict[str, FrameTimes] = {}
        self._words: dict[str, tuple[Note, ...]] = {}
        self._lines: dict[str, tuple[Note, ...]] = {}
        self._labels: dict[str, list[str]] = {}
        self._meanings: dict[str, Meaning | None] = {}
        self._line_vectors: dict[str, NDArray[np.float32]] = {}
        self._text_vectors: dict[str, NDArray[np.float32]] = {}
        self._cosines: dict[tuple[str, str], Floats] = {}

    @property
    def has_vectors(self) -> bool:
        """False in a library without a space: frames can be seen, and not be searched."""
        return self.space.has_vectors

    def only(self, video_ids: Collection[str]) -> LibraryVideos:
        rows = [row for row in self._rows if row.video_id in video_ids]
        return LibraryVideos(self._library, rows, self._embed_text, hide=self._hidden, space=self._other_space)

    def times(self, video_id: str) -> FrameTimes:
        """Return the numbers and times of the frames of a video, else of its words in their place.

        Raises `NeedsPictures` for a video without both.
        """
        if self.has_vectors:
            stored = self.in_memory(video_id).stored
            return FrameTimes(stored.frame_no, stored.time_s)
        if video_id not in self._times:
            if self._is_pictured(video_id):
                self._times[video_id] = FrameTimes(*self._library.frame_times(video_id))
            else:
                starts_s = np.array([note.start_s for note in self._some_words(video_id)])
                self._times[video_id] = FrameTimes(np.arange(len(starts_s), dtype=np.int32), starts_s)
        return self._times[video_id]

    def in_memory(self, video_id: str) -> InMemory:
        """Return the frames of a video, else its words in their place, with their vectors.

        Raises `NeedsPictures` for a video without both, NoVectors in a library without a space.
        """
        if video_id not in self._in_memory:
            pictured = self._is_pictured(video_id)
            read = self._library.in_memory(video_id, self._other_space) if pictured else self._written(video_id)
            self._in_memory[video_id] = read
        return self._in_memory[video_id]

    def _is_pictured(self, video_id: str) -> bool:
        return all(row.frames > 0 for row in self._rows if row.video_id == video_id)

    def _written(self, video_id: str) -> InMemory:
        """Return the words of a video as frames are: numbered from 0, at the time at which each begins."""
        from kinodex.index.rows import FrameVectors
        from kinodex.index.search.in_memory import InMemory

        words = self._some_words(video_id)
        in_own = self._other_space is None and self._library.has_caption_vectors  # of captions alone
        if words[0].source == "captions" and in_own and self.has_vectors:
            return InMemory.of(self._library.caption_vectors(video_id))
        times_s = np.array([note.start_s for note in words])
        vectors = self.embed_texts([note.text for note in words]).astype(np.float16)
        return InMemory.of(FrameVectors(np.arange(len(words), dtype=np.int32), times_s, vectors))

    def _some_words(self, video_id: str) -> tuple[Note, ...]:
        words = self.words(video_id)
        if not words:
            title = next(video.title for video in self.videos if video.video_id == video_id)
            hidden = "" if "speech" not in self._hidden else ", and its transcript is not to be read"
            raise NeedsPictures(
                f"the library holds neither frames nor captions of {title!r}{hidden}; ingest the "
                "video, or import captions of it"
            )
        return words

    def words(self, video_id: str) -> tuple[Note, ...]:
        """Return the captions of a video by the newest model that wrote any, else its transcript; in time order."""
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

    def knows(self, text: str) -> bool:
        """Return False for a text of which the space knows no word: its cosines say nothing."""
        return bool(self.embed_texts([text])[0].any())

    def cosines(self, text: str, video_id: str) -> Floats:
        key = (text, video_id)
        if key not in self._cosines:
            if len(self._cosines) >= COSINES_CACHED:
                self._cosines.pop(next(iter(self._cosines)))
            self._cosines[key] = self._compared(self.embed_texts([text])[0], video_id)
        return self._cosines[key]

    def _compared(self, vector: NDArray[np.float32], video_id: str) -> Floats:
        """Cosine of every frame of a video with a vector; 0 with that of a text of which the space knows no word."""
        held = self.in_memory(video_id)
        return held.cosines(vector).astype(np.float64) if vector.any() else np.zeros(len(held.units))

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
        """Rank the videos by the `k` best matches of each text, best first.

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
        if anchors_from == "frames" or (self.has_vectors and (anchors_from == "all" or not words)):
            vector = self.embed_texts([text])[0]
            if vector.any():  # else the space knows no word of the text
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


AnchorsFrom = Literal["all", "frames", "words"]
"""Kinds of matches that lead a search to a frame: of its picture, of the words at its time, or the better of both."""
