"""Videos of a library as an environment reads them: vectors are read, and texts embedded, once.

Where a library holds no frames of a video, what is written of it (its captions, else its transcript) stands in their
place: each line has the vector of its text and the number and time of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsPictures
from kinodex.agent.matches import LIKELY, NO_MATCH, Floats, deviation_of_chance, robust_deviations, word_deviations
from kinodex.agent.protocol import CAPTION, EXACT_S, SCREEN_TEXT, SUBTITLE, Note, Video
from kinodex.index.rows import TranscriptRow

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import (
        CaptionRow,
        ClipRow,
        DetectionRow,
        Hit,
        SceneRow,
        Scope,
        ScreenTextRow,
        SegmentRow,
        StoredFrame,
        VideoRow,
    )
    from kinodex.index.search.in_memory import InMemory
    from kinodex.index.sentences import Meaning
    from kinodex.index.spaces.towers import Fingerprint

EmbedText = Callable[[list[str]], NDArray[np.float32]]
COSINES_CACHED = 256
"""Texts whose cosines with a video are cached: of hours of film, those of one text are some tens of kilobytes."""
MANY_VIDEOS = 1000
"""More than these are not named to a search where they are the whole library: a filter of 20,000 takes a second."""
MIN_GAP_S = 10.0
"""Between two frames of one video that count when videos are ranked."""


class LibraryVideos:
    """Some videos of one library, read in one of its spaces; the `VideoSource` of an environment over a library."""

    def __init__(
        self,
        library: LibraryReader,
        rows: Sequence[VideoRow],
        embed_text: EmbedText,
        *,
        subtitles: bool = True,
        screen_text: bool = True,
        space: str | None = None,
    ) -> None:
        """`embed_text` is of `space`, the name or digest of one of `library.spaces()`; None is the library's own.

        Without `subtitles` it is as if there were no transcript, without `screen_text` as if no text was on screen.
        """
        self.uri = library.uri
        self.space = library.space(space)
        self.videos = tuple(Video(row.video_id, row.title, row.start_s, row.duration_s, row.frames > 0) for row in rows)
        self.index_frames = sum(row.frames for row in rows)
        self._library, self._rows, self._embed_text = library, tuple(rows), embed_text
        self._subtitles, self._screen_text = subtitles, screen_text
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

    def only(self, video_ids: Collection[str]) -> LibraryVideos:
        """The videos of these ids, with caches of their own."""
        rows = [row for row in self._rows if row.video_id in video_ids]
        shown = {"subtitles": self._subtitles, "screen_text": self._screen_text}
        return LibraryVideos(self._library, rows, self._embed_text, **shown, space=self._other_space)

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
            hidden = "" if self._subtitles else ", and its transcript is not to be read"
            raise NeedsPictures(
                f"the library holds neither frames nor captions of {title!r}{hidden}; ingest the "
                "video, or import captions of it"
            )
        if words[0].source == CAPTION and self._other_space is None:  # the vectors of captions are in the own space
            return InMemory.of(self._library.caption_vectors(video_id))
        times_s = np.array([note.start_s for note in words])
        vectors = self.embed_texts([note.text for note in words]).astype(np.float16)
        return InMemory.of(FrameVectors(np.arange(len(words), dtype=np.int32), times_s, vectors))

    def words(self, video_id: str) -> tuple[Note, ...]:
        """The captions of a video by the newest model that wrote any, else its transcript; in time order."""
        if video_id not in self._words:
            captions = tuple(note for note in self.lines(video_id) if note.source == CAPTION)
            said = tuple(note for note in self.lines(video_id) if note.source == SUBTITLE)
            self._words[video_id] = captions or said
        return self._words[video_id]

    def lines(self, video_id: str) -> tuple[Note, ...]:
        """All that is written of a video, said in it or stands on its screen: notes by source, in time order."""
        if video_id not in self._lines:
            kinds: dict[str, Sequence[TranscriptRow | ScreenTextRow | CaptionRow]] = {
                SUBTITLE: self.transcript(video_id),
                SCREEN_TEXT: self.screen_text(video_id),
                CAPTION: self.captions(video_id),
            }
            notes = [_quoted(row, kind) for kind, rows in kinds.items() for row in rows]
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
        """Unit vectors [t, dim] of texts in the space; those not embedded before are embedded together."""
        new = [text for text in dict.fromkeys(texts) if text not in self._text_vectors]
        if new:
            self._text_vectors.update(zip(new, self._embed_text(new), strict=True))
        return np.stack([self._text_vectors[text] for text in texts])

    def cosines(self, text: str, video_id: str) -> Floats:
        """Cosine of every stored frame of a video with a text, in time order."""
        key = (text, video_id)
        if key not in self._cosines:
            if len(self._cosines) >= COSINES_CACHED:
                self._cosines.pop(next(iter(self._cosines)))
            vector = self.embed_texts([text])[0]
            self._cosines[key] = self.in_memory(video_id).cosines(vector).astype(np.float64)
        return self._cosines[key]

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        """Stored frames with pictures, in the order of the numbers."""
        return self._library.frames(video_id, frame_nos)

    def transcript(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[TranscriptRow]:
        """Lines spoken in [start_s, end_s); none without subtitles."""
        return self._library.transcript(video_id, start_s, end_s) if self._subtitles else []

    def screen_text(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[ScreenTextRow]:
        """Lines of text on screen in [start_s, end_s); none if they are not to be read."""
        return self._library.screen_text.rows(video_id, start_s, end_s) if self._screen_text else []

    def segments(self, video_id: str) -> list[SegmentRow]:
        """All segments of a video, in order."""
        return self._library.segments(video_id)

    def captions(self, video_id: str) -> list[CaptionRow]:
        """Captions of a video by the newest model that wrote any."""
        return self._library.captions(video_id)

    def detections(
        self, video_id: str, start_s: float | None, end_s: float | None, label: str | None
    ) -> list[DetectionRow]:
        """Detections at times in [start_s, end_s), in order; of one label or all."""
        return self._library.detections(video_id, start_s, end_s, label)

    def detection_labels(self, video_id: str) -> list[str]:
        """Labels of the detections of a video, those found most often first."""
        if video_id not in self._labels:
            self._labels[video_id] = self._library.detection_labels(video_id)
        return self._labels[video_id]

    def scenes(self, video_id: str) -> list[SceneRow]:
        """Scenes and chapters of a video with titles and summaries, a chapter before its scenes; none without a model.

        Their texts were written from all words of a video, so there are none where subtitles or text on screen are not
        to be read.
        """
        return self._library.scenes.rows(video_id) if self._subtitles and self._screen_text else []

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        """Captions of parts of a video that a model wrote for agents."""
        return self._library.clips.read(video_id, model)

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Keep captions of parts of videos in the library; raises a `LibraryError` where it cannot be written."""
        self._library.clips.add(rows)

    def search_transcript(self, text: str, k: int) -> list[Hit]:
        """The `k` transcript lines that match a text best; none without subtitles."""
        return self._known(self._library.search.transcript(text, self._scope, k)) if self._subtitles else []

    def search_words(self, text: str, k: int) -> list[Hit]:
        """The `k` lines that match a text best: said, on screen or captions, by words and, if it can be, by meaning."""
        from kinodex.index.annotations import LINE_SOURCES

        hidden = {"transcript": not self._subtitles, "text": not self._screen_text}
        sources = [source for source in LINE_SOURCES if not hidden.get(source)]
        meaning = self._library.sentences.meaning(text)
        return self._known(self._library.search.words(text, self._scope, k, meaning=meaning, sources=sources))

    def ranked(self, texts: Sequence[str], k: int, anchors_from: AnchorsFrom = "both") -> list[str]:
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
        words = [] if anchors_from == "pictures" and pictured else self.search_words(text, k)
        frames: list[Hit] = []
        if anchors_from != "words" or not words:
            vector = self.embed_texts([text])[0]
            frames = self._known(self._library.search.frames(vector, self._scope, k, MIN_GAP_S, self._other_space))
        if not words:
            yield from ((hit.video_id, hit.score) for hit in frames)
        for hits in (words, frames) if words else ():
            yield from ((hit.video_id, -rank) for rank, hit in enumerate(hits))

    @cached_property
    def _scope(self) -> Scope:
        from kinodex.index.rows import Scope

        unnamed = len(self.videos) > MANY_VIDEOS and self._ids >= self._library.video_ids()
        return Scope() if unnamed else Scope(tuple(video.video_id for video in self.videos))

    def _known(self, hits: Sequence[Hit]) -> list[Hit]:
        """Leave out hits in videos that came into the library later."""
        return [hit for hit in hits if hit.video_id in self._ids]


def _quoted(row: TranscriptRow | ScreenTextRow | CaptionRow, kind: str) -> Note:
    """A line as a note; a caption has a confidence, and how surely text was read is no doubt about the video.

    What was heard says by whom, where voices are told apart; imported lines stay as they were asked before there were
    voices.
    """
    confidence = getattr(row, "confidence", None) if kind == CAPTION else None
    speaker = getattr(row, "speaker", None) if getattr(row, "source", "") == "asr" else None
    text = f"{speaker}: {row.text}" if speaker else row.text
    return Note(row.video_id, row.start_s, row.end_s, kind, text, confidence)


# Matches of queries with all lines of a video: what is said, what stands on screen, and captions.
#
# Each kind of line is judged by its own kind, in all videos that are searched: captions resemble any query about
# pictures more than speech does. Where the library has vectors of sentences, a line matches by the better of its words
# and its meaning. A line belongs to the frame on screen in the middle of its time.
#
# The papers search pictures alone (EEA, section 3.1, names a retriever of clips without its input) and leave open all
# of this.

AnchorsFrom = Literal["both", "pictures", "words"]
"""Kinds of matches that lead a search to a frame: of its picture, of the words at its time, or the better of both."""
LEAST_LINES = 8
"""Fewer lines have no distribution by which a cosine could be judged."""


def frame_deviations(
    source: VideoSource, texts: Sequence[str], video_id: str, among: Sequence[str], times_s: Floats, places: int
) -> Floats:
    """Deviations [n, t] of the best line of each of the frames at `times_s` [n]; `NO_MATCH` for frames without one."""
    found = np.full((len(times_s), len(texts)), NO_MATCH)
    lines = source.lines(video_id)
    if lines and len(times_s):
        np.maximum.at(found, frames_of(lines, times_s), line_deviations(source, texts, video_id, among, places))
    return found


def frames_of(lines: Sequence[Note], times_s: Floats) -> NDArray[np.intp]:
    """Positions of the frames on screen in the middle of each line."""
    middles_s = np.array([(line.start_s + line.end_s) / 2 for line in lines])
    return np.maximum(np.searchsorted(times_s, middles_s + EXACT_S, side="right") - 1, 0)


def line_deviations(
    source: VideoSource, texts: Sequence[str], video_id: str, among: Sequence[str], places: int
) -> Floats:
    """Deviations [n, t] of the lines of a video in order, judged by those of all videos `among` which it is."""
    lines = source.lines(video_id)
    found = np.full((len(lines), len(texts)), NO_MATCH)
    videos = list(dict.fromkeys([video_id, *among]))
    for kind in dict.fromkeys(line.source for line in lines):
        here = [at for at, line in enumerate(lines) if line.source == kind]
        known = [line.text for each in videos for line in source.lines(each) if line.source == kind]
        own = [lines[at].text for at in here]
        by_words = [word_deviations(text, own, known, places) for text in texts]
        found[here] = np.stack(by_words, axis=1)
        if len(known) >= LEAST_LINES and (by_meaning := _meanings(source, texts, videos, kind)) is not None:
            low = deviation_of_chance(min(LIKELY, places / len(known)))
            by_meaning[by_meaning < low] = NO_MATCH
            found[here] = np.maximum(found[here], by_meaning[: len(here)])
    return found


def _meanings(source: VideoSource, texts: Sequence[str], videos: Sequence[str], kind: str) -> Floats | None:
    """Deviations by meaning of the lines of a kind, those of the first video first; None without vectors of all."""
    cosines = []
    for video_id in videos:
        lines, compared = source.lines(video_id), [source.line_cosines(text, video_id) for text in texts]
        if lines and any(each is None for each in compared):
            return None
        rows = [at for at, line in enumerate(lines) if line.source == kind]
        cosines += [np.stack([each[rows] for each in compared if each is not None], axis=1)] if rows else []
    known = np.concatenate(cosines)
    return None if np.isnan(known).any() else robust_deviations(known, known)


# The reading of some videos, for an environment: `agent.library_videos` reads a library, a simulation makes it up.


class VideoSource(Protocol):
    """Reading of some videos, with caches for what is costly: `LibraryVideos`, or a simulation."""

    @property
    def uri(self) -> str: ...
    @property
    def space(self) -> Fingerprint: ...
    @property
    def videos(self) -> tuple[Video, ...]: ...
    @property
    def index_frames(self) -> int: ...
    def only(self, video_ids: Collection[str]) -> VideoSource: ...
    def ranked(self, texts: Sequence[str], k: int, anchors_from: AnchorsFrom = "both") -> list[str]: ...
    def in_memory(self, video_id: str) -> InMemory: ...
    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]: ...
    def cosines(self, text: str, video_id: str) -> Floats: ...
    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]: ...
    def words(self, video_id: str) -> tuple[Note, ...]: ...
    def lines(self, video_id: str) -> tuple[Note, ...]: ...
    def line_cosines(self, text: str, video_id: str) -> Floats | None: ...
    def segments(self, video_id: str) -> list[SegmentRow]: ...
    def captions(self, video_id: str) -> list[CaptionRow]: ...
    def detections(
        self, video_id: str, start_s: float | None, end_s: float | None, label: str | None
    ) -> list[DetectionRow]: ...
    def detection_labels(self, video_id: str) -> list[str]: ...
    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]: ...
    def screen_text(self, video_id: str, start_s: float, end_s: float) -> list[ScreenTextRow]: ...
    def search_transcript(self, text: str, k: int) -> list[Hit]: ...
    def search_words(self, text: str, k: int) -> list[Hit]: ...
    def scenes(self, video_id: str) -> list[SceneRow]: ...
    def clips(self, video_id: str, model: str) -> list[ClipRow]: ...
    def add_clips(self, rows: Sequence[ClipRow]) -> None: ...
