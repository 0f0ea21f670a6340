"""An environment: all that an agent may ask of some videos of one library. No file, no label, no answer.

A video's vectors are read once and then searched in memory. Matches of pictures and of words have one scale, from 0 to
1, on which a match is worth the more the less chance explains it (`scale`).

Where a library holds no frames of a video, what is written of it (`words`) stands in their place: times, vectors,
searches and clusters are those of its captions, and only a picture cannot be had.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsPictures
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import EXACT_S, Anchor, Video, named_video
from kinodex.agent.videos.library_videos import AnchorsFrom, EmbedText, FrameTimes, LibraryVideos
from kinodex.agent.videos.line_matches import frame_deviations
from kinodex.agent.videos.scale import NO_MATCH, Floats, calibrate, robust_deviations
from kinodex.index.kinds import LINE_KINDS, QUOTED_KINDS, KindName

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader
    from kinodex.index.rows import ChapterRow, DetectionRow, FrameVectors, Hit, NoteRow, SegmentRow, VideoRow

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
        return cls.of(opened, rows, opened.text_embedder(space), detect, space=space)

    def only(self, video_ids: Collection[str]) -> Environment:
        """Return the same environment with the videos of these ids alone."""
        return replace(self, source=self.source.only(video_ids))

    def without_shared_captions(self) -> Environment:
        """Return the same videos for one question alone: captions made for other questions are neither read nor kept.

        The caches of the source are shared.
        """
        return replace(self, keep_captions=False, unsaved_captions={})

    def nearest(
        self, texts: Sequence[str], count: int, keep: Collection[str] = (), anchors_from: AnchorsFrom = "all"
    ) -> Environment:
        """Return the `count` videos whose frames or words match the texts best, and those of `keep`.

        Return the environment itself if it has no more.

        Of a video without frames, its captions and transcript are matched in any case.
        """
        if len(self.videos) <= count:
            return self
        ranked = self.source.ranked(texts, 4 * count, anchors_from)
        chosen = ranked[:count]
        chosen += [video.video_id for video in self.videos if video.video_id not in ranked][: count - len(chosen)]
        return self.only({*chosen, *keep})

    def video(self, name: str | None = None) -> Video:
        """Return the video that a model means by an id, the first digits of one, or a title; None is the only video.

        Raises `InvalidReply`, which says what videos there are.
        """
        return named_video(self.videos, name)

    def pictured(self, video_id: str) -> bool:
        """Return True if the library holds frames of a video, not words alone."""
        return all(video.has_pictures for video in self.videos if video.video_id == video_id)

    @property
    def has_pictures(self) -> bool:
        """True if the library holds frames of any of the videos."""
        return any(video.has_pictures for video in self.videos)

    @property
    def has_vectors(self) -> bool:
        """False in a library without a space: words alone are searched there, and what needs more raises NoVectors."""
        return self.source.has_vectors

    def incomparable(self, texts: Sequence[str]) -> str:
        """Say why no picture can be compared with any of these texts; "" if one can, or if there is no picture."""
        from kinodex.index.errors import NoVectors, UnknownWords

        if not self.has_pictures:
            return ""
        if not self.has_vectors:
            return str(NoVectors.of(self.source.uri))
        if any(map(self.source.knows, texts)):
            return ""
        return str(UnknownWords.of(self.source.space.name, ", ".join(texts)))

    def vectors(self, video_id: str) -> FrameVectors:
        """Return all frame vectors of a video, in time order.

        Raises `NeedsPictures` for a video without frames and words.
        """
        return self.source.in_memory(video_id).stored

    def frame_times(self, video_id: str) -> FrameTimes:
        """Return the numbers and times of the stored frames of a video, in time order; raises as `vectors` does."""
        return self.source.times(video_id)

    def times(self, video_id: str) -> Floats:
        """Return the times of the stored frames of a video, ascending."""
        return self.frame_times(video_id).time_s

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

        `NO_MATCH` is for the kind that `anchors_from` leaves out, for pictures without vectors, and for frames without
        a line, or with one as which chance would find `places` others.
        """
        times_s = self.times(video_id)
        nothing = np.full((len(times_s), len(texts)), NO_MATCH)
        unsearched = anchors_from == "words" or (anchors_from == "all" and not self.has_vectors)
        pictures = nothing if unsearched else self.deviations(texts, video_id, among)
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

        stored, found = self.frame_times(video_id), []
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
        """Return the library's segments that share some time with [start_s, end_s), in order, with captions if it has
        any.
        """
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
        """Return the stored frames of a video nearest to some times, with pictures, in time order, each once."""
        if len(times_s) == 0:
            return ()
        stored = self.frame_times(video_id)
        nearest = {int(np.argmin(np.abs(stored.time_s - time_s))) for time_s in times_s}
        return self.frames_numbered(video_id, [int(stored.frame_no[at]) for at in sorted(nearest)])

    def moments(self, video_id: str, times_s: Sequence[float] | Floats) -> tuple[ShownFrame, ...]:
        """Return the stored frames nearest to some times, as `frames` does, without their pictures.

        Of a video without frames they are the times of its words. They stand in a search for what is read there.
        """
        stored = self.frame_times(video_id)
        nearest = sorted({int(np.argmin(np.abs(stored.time_s - time_s))) for time_s in times_s})
        return tuple(
            ShownFrame(video_id, int(stored.frame_no[at]), float(stored.time_s[at]), 0, 0, b"") for at in nearest
        )

    def words_of(self, moment: ShownFrame, around_s: float) -> tuple[Note, ...]:
        """Quote all lines of a moment, and of `around_s` before and after it, and name what was detected then."""
        start_s, end_s = self.shown_range(moment)
        lines = self.lines(moment.video_id, LINE_KINDS, start_s - around_s, end_s + around_s)
        labels = dict.fromkeys(row.label for row in self.detections(moment.video_id, start_s, end_s))
        if not labels:
            return lines
        return (*lines, Note(moment.video_id, start_s, end_s, "detections", ", ".join(labels)))

    def frames_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[ShownFrame, ...]:
        """Return the frame on screen in the middle of each of `count` equal parts of [start_s, end_s), each once.

        Fewer than `count` where the picture stands still; the first may then be of a time before `start_s`.
        """
        return self.frames_numbered(video_id, self.numbers_between(video_id, start_s, end_s, count))

    def numbers_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[int, ...]:
        """Return the numbers of the frames of `frames_between`."""
        at = self._between(video_id, start_s, end_s, count)
        return tuple(int(number) for number in self.frame_times(video_id).frame_no[at])

    def times_between(self, video_id: str, start_s: float, end_s: float, count: int) -> tuple[float, ...]:
        """Return the times of the frames of `frames_between`, or of the words in their place."""
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
        """Return the time that a stored frame stands for: until the next one, or the video's end."""
        return frame.time_s, self.shown_until(frame.video_id, frame.time_s)

    def shown_until(self, video_id: str, time_s: float) -> float:
        """Return the time at which the picture on screen at `time_s` gives way to the next stored frame, or the video
        ends.
        """
        times = self.times(video_id)
        later = times[times > time_s]
        end_s = next(video.end_s for video in self.videos if video.video_id == video_id)
        return float(later[0]) if len(later) else end_s


def _range(start_s: float | None, end_s: float | None) -> tuple[float, float]:
    return -math.inf if start_s is None else start_s, math.inf if end_s is None else end_s
