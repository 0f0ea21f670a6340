"""What an agent may touch: one library, opened for reading, and some of its videos. No file, no label, no answer.

A video's vectors are read once and then searched in memory. Similarities are calibrated to 0..1 against the
distribution of a query over the video, because a cosine of 0.3 is a match in one space and noise in another:
with z the distance from the median in robust standard deviations, a similarity is `z / (z + 6)`, 0 below the
median. The best of a few thousand unrelated frames (z = 3.5) gets 0.37, one that stands out (z = 12) 0.67.
Queries asked together share one scale, the mean of their deviations: with a scale each, a weak match of a query
that resembles few frames would beat a strong match of one that resembles many.

Where a library holds no frames of a video, what is written of it (`words`) stands in their place: times, vectors,
searches and clusters are those of its captions, and only a picture cannot be had.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from agent.core.protocol import ShownFrame
from agent.core.question import Note, Video
from agent.errors import InvalidReply, NeedsPictures
from agent.text_evidence import as_frames, words_of

if TYPE_CHECKING:
    from index.library import Library
    from index.rows import ClipRow, DetectionRow, FrameVectors, Hit, Scope, SegmentRow, TranscriptRow, VideoRow
    from index.search.in_memory import InMemory

EmbedText = Callable[[list[str]], NDArray[np.float32]]
Detect = Callable[[Sequence[ShownFrame], str], "list[DetectionRow] | None"]
"""Looks for a label in frames of one video, in time order, and follows it from frame to frame.

None if it cannot look for this label.
"""
Floats = NDArray[np.float64]

HALFWAY = 6.0
"""The deviation from the median that is calibrated to 0.5."""
SAME_DISTANCE_SHARE = 1.4826
"""Standard deviations in one median absolute deviation of a normal distribution."""
FLAT = 1e-6
"""A deviation of cosines below this is rounding."""
EXACT_S = 1e-6
COSINES_KEPT = 256
"""Texts whose cosines with a video are kept: of hours of film, those of one text are some tens of kilobytes."""
LEAST_PREFIX = 4
VIDEOS_NAMED = 5
MANY_VIDEOS = 1000
"""More than these are not named to a search where they are the whole library: a filter of 20,000 takes a second."""


@dataclass(frozen=True, slots=True)
class Match:
    """A stored frame that a query matched; `similarity` is calibrated to 0..1."""

    video_id: str
    frame_no: int
    time_s: float
    similarity: float
    query: str


class Environment:
    """A library's videos as an agent sees them. Times are the library's presentation times, in seconds."""

    def __init__(
        self,
        library: Library,
        videos: Sequence[VideoRow],
        embed_text: EmbedText,
        detect: Detect | None = None,
        *,
        subtitles: bool = True,
        space: str | None = None,
    ) -> None:
        """`embed_text` is of `space`, the name or digest of one of `library.spaces()`; None is the library's own."""
        own, chosen = library.fingerprint, library.space(space)
        self.library = library
        self.detect = detect
        """A detector, where one was given; `agent.tools.detection` asks it for what the library does not hold."""
        self.halfway = HALFWAY
        """The calibration of `search`; simulations try others."""
        self.subtitles = subtitles
        """Whether the transcript can be read; if not, it is as if there were none."""
        self._rows = tuple(videos)
        self.videos = tuple(
            Video(row.video_id, row.title, row.start_s, row.duration_s, row.frames > 0) for row in videos
        )
        self.index_frames = sum(row.frames for row in videos)
        self.space = str(chosen)
        self.remembered: dict[tuple[str, str, str], ClipRow | None] = {}
        """By video, model and part: captions that the library could not keep, and None where none could be had."""
        self.keeps = True
        """Whether captions that an agent has made are kept in the library, and those kept there are read."""
        self._embed_text = embed_text
        self._other = None if chosen.digest == own.digest else chosen.digest
        self._in_memory: dict[str, InMemory] = {}
        self._words: dict[str, tuple[Note, ...]] = {}
        self._text_vectors: dict[str, NDArray[np.float32]] = {}
        self._cosines: dict[tuple[str, str], Floats] = {}

    @classmethod
    def open(cls, library: Library | str, *videos: str, detect: Detect | None = None, space: str | None = None) -> Self:
        """The videos of these names and globs (none: all) of a library, or of the one at this place, with a text tower.

        The tower is that of `space`, by name or digest; None is its own. Raises a `LibraryError` or `SpaceError`.
        """
        from index.library import Library

        opened = Library.open(library) if isinstance(library, str) else library
        rows = opened.videos_named(videos) or opened.videos()
        return cls(opened, rows, opened.load_space(space, "text").embed_text, detect, space=space)

    def video(self, name: str | None = None) -> Video:
        """The video that a model means by an id, the first digits of one, or a title; None is the only video.

        Raises `InvalidReply`, which says what videos there are.
        """
        return named_video(self.videos, name)

    def by_itself(self) -> Environment:
        """The same videos for one question alone: no caption made for others is read, and none is kept for them.

        What was read from the library and embedded is shared.
        """
        alone = copy.copy(self)
        alone.keeps, alone.remembered = False, {}
        return alone

    @property
    def has_pictures(self) -> bool:
        """Whether the library holds frames of all the videos."""
        return all(video.has_pictures for video in self.videos)

    def pictured(self, video_id: str) -> bool:
        """Whether the library holds frames of a video, not words alone."""
        return all(video.has_pictures for video in self.videos if video.video_id == video_id)

    def vectors(self, video_id: str) -> FrameVectors:
        """All frame vectors of a video, in time order."""
        return self.in_memory(video_id).stored

    def in_memory(self, video_id: str) -> InMemory:
        """The frames of a video, else what stands in their place, read from the library the first time only.

        Raises `NeedsPictures` for a video without frames and words.
        """
        if video_id not in self._in_memory:
            pictured = self.pictured(video_id)
            self._in_memory[video_id] = (
                self.library.in_memory(video_id, self._other) if pictured else self._in_words(video_id)
            )
        return self._in_memory[video_id]

    def _in_words(self, video_id: str) -> InMemory:
        from index.search.in_memory import InMemory

        words = self.words(video_id)
        if not words:
            hidden = "" if self.subtitles else ", and its transcript is not to be read"
            raise NeedsPictures(
                f"the library holds neither frames nor captions of {self.video(video_id).title!r}{hidden}; ingest the "
                "video, or import captions of it"
            )
        return InMemory.of(as_frames(words, self.embed_texts, None if self._other else self.library))

    def words(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> tuple[Note, ...]:
        """What is written of a video, its captions or else what is said, that begins in [start_s, end_s), in order."""
        if video_id not in self._words:
            self._words[video_id] = words_of(self.library, video_id, self.subtitles)
        low, high = _range(start_s, end_s)
        told, start = self._words[video_id], attrgetter("start_s")
        return told[bisect_left(told, low, key=start) : bisect_left(told, high, key=start)]

    def times(self, video_id: str) -> Floats:
        """Times of the stored frames of a video, ascending."""
        return self.vectors(video_id).time_s

    def embed_text(self, text: str) -> NDArray[np.float32]:
        """Unit vector of a text in this environment's space."""
        vector: NDArray[np.float32] = self.embed_texts([text])[0]
        return vector

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors [t, dim] of texts in this environment's space; those not embedded before go together."""
        new = [text for text in dict.fromkeys(texts) if text not in self._text_vectors]
        if new:
            self._text_vectors.update(zip(new, self._embed_text(new), strict=True))
        return np.stack([self._text_vectors[text] for text in texts])

    def cosines(self, text: str, video_id: str) -> Floats:
        """Cosine of every stored frame of a video with a text, in time order."""
        key = (text, video_id)
        if key not in self._cosines:
            if len(self._cosines) >= COSINES_KEPT:
                self._cosines.pop(next(iter(self._cosines)))
            self._cosines[key] = self.in_memory(video_id).cosines(self.embed_text(text)).astype(np.float64)
        return self._cosines[key]

    def deviations(self, texts: Sequence[str], video_id: str, among: Sequence[str] = ()) -> Floats:
        """By how many robust deviations each frame [n] matches each text [t] better than the median frame: [n, t].

        The texts are judged on one scale, their mean deviation, so that the matches of alternatives compare. Median
        and scale are those of the video, or of all videos `among` which it is, so that matches in several compare.
        """
        cosines = self._all_cosines(texts, video_id)
        known = np.concatenate([self._all_cosines(texts, each) for each in among]) if among else cosines
        middle = np.median(known, axis=0)
        scale = SAME_DISTANCE_SHARE * float(np.median(np.abs(known - middle), axis=0).mean())
        scale = scale if scale >= FLAT else float(known.std(axis=0).mean())
        return (cosines - middle) / scale if scale >= FLAT else np.zeros_like(cosines)

    def _all_cosines(self, texts: Sequence[str], video_id: str) -> Floats:
        self.embed_texts(texts)  # all at once, not one by one
        return np.stack([self.cosines(text, video_id) for text in texts], axis=1)

    def search(
        self, texts: Sequence[str], video_id: str, k: int, min_gap_s: float, among: Sequence[str] = ()
    ) -> list[Match]:
        """For each text the `k` frames of a video that match it best, no two closer than `min_gap_s`, best first."""
        from index.search.in_memory import apart

        stored = self.vectors(video_id)
        found: list[Match] = []
        for text, similarities in zip(texts, self._calibrated(texts, video_id, among).T, strict=True):
            found += [
                Match(video_id, int(stored.frame_no[at]), float(stored.time_s[at]), float(similarities[at]), text)
                for at in apart(similarities, stored.time_s, k, min_gap_s)
            ]
        return found

    def _calibrated(self, texts: Sequence[str], video_id: str, among: Sequence[str]) -> Floats:
        return calibrate(self.deviations(texts, video_id, among), self.halfway)

    def search_transcript(self, text: str, k: int) -> list[Hit]:
        """The `k` transcript lines that match a text best; none without subtitles."""
        return self._known(self.library.search_transcript(text, self._everywhere, k)) if self.subtitles else []

    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]:
        """What is said in [start_s, end_s); nothing without subtitles."""
        return self.library.transcript(video_id, start_s, end_s) if self.subtitles else []

    def segments(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[SegmentRow]:
        """The library's segments that share some time with [start_s, end_s), in order, with captions if it has any."""
        low, high = _range(start_s, end_s)
        return [each for each in self.library.segments(video_id) if each.end_s > low and each.start_s < high]

    def captions(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> tuple[Note, ...]:
        """What `kinodex add captions` wrote of segments that share some time with [start_s, end_s), in order."""
        low, high = _range(start_s, end_s)
        return tuple(
            Note(video_id, row.start_s, row.end_s, "caption", row.text, row.confidence)
            for row in self.library.captions(video_id)
            if row.end_s > low and row.start_s < high
        )

    def detections(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None, label: str | None = None
    ) -> list[DetectionRow]:
        """What `kinodex add detections` found at times in [start_s, end_s), in order; of one label or all."""
        return self.library.detections(video_id, start_s, end_s, label)

    def nearest(self, texts: Sequence[str], count: int, keep: Collection[str] = ()) -> Environment:
        """This environment, of more than `count` videos only those whose frames match the texts best, and `keep`.

        Found by the library's index over all videos, so that the vectors of a large library are never all read.
        Where a video has none, captions and lines tell too, by rank, since their scores and cosines do not compare.
        """
        if len(self.videos) <= count:
            return self
        best: dict[str, float] = {}
        for text in texts:
            for video_id, score in self._found(text, 4 * count):
                best[video_id] = max(score, best.get(video_id, score))
        chosen = sorted(best, key=lambda video_id: -best[video_id])[:count]
        chosen += [row.video_id for row in self._rows if row.video_id not in best][: count - len(chosen)]
        rows = [row for row in self._rows if row.video_id in chosen or row.video_id in keep]
        nearest = Environment(
            self.library, rows, self._embed_text, self.detect, subtitles=self.subtitles, space=self._other
        )
        nearest.remembered, nearest.halfway, nearest.keeps = self.remembered, self.halfway, self.keeps
        return nearest

    def _found(self, text: str, k: int) -> Iterator[tuple[str, float]]:
        """Videos with how well their frames, where some have none also their words, match a text."""
        frames = self._known(self.library.search_frames(self.embed_text(text), self._everywhere, k, 10.0, self._other))
        if self.has_pictures:
            yield from ((hit.video_id, hit.score) for hit in frames)
            return
        captions = self._known(self.library.search_captions(text, None, self._everywhere, k))
        words = [*captions, *self.search_transcript(text, k)]
        for hits in (sorted(words, key=lambda hit: -hit.score), frames):
            yield from ((hit.video_id, -rank) for rank, hit in enumerate(hits))

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(video.video_id for video in self.videos)

    @cached_property
    def _everywhere(self) -> Scope:
        from index.rows import Scope

        nameless = len(self.videos) > MANY_VIDEOS and self._ids >= self.library.video_ids()
        return Scope() if nameless else Scope(tuple(video.video_id for video in self.videos))

    def _known(self, hits: Sequence[Hit]) -> list[Hit]:
        """Without those of videos that came into the library later."""
        return [hit for hit in hits if hit.video_id in self._ids]

    def frames(self, video_id: str, times_s: Sequence[float] | Floats) -> tuple[ShownFrame, ...]:
        """The stored frames of a video nearest to some times, with pictures, in time order, each once."""
        if len(times_s) == 0:
            return ()
        stored = self.vectors(video_id)
        nearest = {int(np.argmin(np.abs(stored.time_s - time_s))) for time_s in times_s}
        return self.frames_numbered(video_id, [int(stored.frame_no[at]) for at in sorted(nearest)])

    def frames_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[ShownFrame, ...]:
        """What is on screen in the middle of each of `count` equal parts of [start_s, end_s), each frame once.

        Fewer than `count` where the picture stands still; the first may then be of a time before `start_s`.
        """
        return self.frames_numbered(video_id, self.numbers_between(video_id, start_s, end_s, count))

    def numbers_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[int, ...]:
        """The numbers of the frames that `frames_between` gives."""
        at = self._between(video_id, start_s, end_s, count)
        return tuple(int(number) for number in self.vectors(video_id).frame_no[at])

    def times_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[float, ...]:
        """Their times, or those of what stands in the place of frames."""
        at = self._between(video_id, start_s, end_s, count)
        return tuple(float(time_s) for time_s in self.times(video_id)[at])

    def _between(self, video_id: str, start_s: float, end_s: float, count: int) -> NDArray[np.intp]:
        middles_s = start_s + (end_s - start_s) * (np.arange(count) + 0.5) / count
        at = np.searchsorted(self.times(video_id), middles_s + EXACT_S, side="right") - 1
        return np.unique(np.maximum(at, 0))

    def frames_numbered(self, video_id: str, frame_nos: Sequence[int]) -> tuple[ShownFrame, ...]:
        """Stored frames by their numbers, with pictures, in the order asked for; raises `NeedsPictures`."""
        if not self.pictured(video_id):
            raise NeedsPictures(f"the library holds no frames of {self.video(video_id).title!r}; ingest the video")
        return tuple(
            ShownFrame(row.video_id, row.frame_no, row.time_s, row.width_px, row.height_px, row.jpeg)
            for row in self.library.frames(video_id, frame_nos)
        )

    def shown_range(self, frame: ShownFrame) -> tuple[float, float]:
        """The time that a stored frame stands for: until the next one, or the video's end."""
        return frame.time_s, self.shown_until(frame.video_id, frame.time_s)

    def shown_until(self, video_id: str, time_s: float) -> float:
        """When the picture on screen at a time gives way to the next stored frame, or the video ends."""
        times = self.times(video_id)
        later = times[times > time_s]
        end_s = next(video.end_s for video in self.videos if video.video_id == video_id)
        return float(later[0]) if len(later) else end_s


def named_video(videos: Sequence[Video], name: str | None) -> Video:
    """The one of some videos that `Environment.video` means; raises `InvalidReply` if there is none, or several."""
    if name is None and len(videos) == 1:
        return videos[0]
    wanted = (name or "").strip()
    named = [video for video in videos if wanted in (video.video_id, video.title)]
    if not named and len(wanted) >= LEAST_PREFIX:
        named = [video for video in videos if video.video_id.startswith(wanted)]
    if len(named) == 1:
        return named[0]
    some = ", ".join(video.video_id[:12] for video in videos[:VIDEOS_NAMED])
    more = ", ..." if len(videos) > VIDEOS_NAMED else ""
    raise InvalidReply(f"{name!r} names {len(named) or 'no'} video" + f"; the videos are {some}{more}")


def _range(start_s: float | None, end_s: float | None) -> tuple[float, float]:
    return -math.inf if start_s is None else start_s, math.inf if end_s is None else end_s


def calibrate(deviations: Floats, halfway: float = HALFWAY) -> Floats:
    """Deviations brought to 0..1, `halfway` to 0.5, without an upper end at which strong matches would become equal."""
    above = np.maximum(deviations, 0.0)
    calibrated: Floats = above / (above + halfway)
    return calibrated
