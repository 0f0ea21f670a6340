"""What an agent may touch: one library, opened for reading, and some of its videos. No file, no label, no
answer.

A video's vectors are read once and then searched in memory. Similarities are calibrated to 0..1 against the
distribution of one query over one video, because a cosine of 0.3 is a match in one space and noise in
another: `1 / (1 + exp(-(z - 4)))`, z being the distance from the median in robust standard deviations. A
frame at the median gets 0.02, the best of a few thousand unrelated ones (z = 3.5) 0.38, a frame that stands
out (z = 7) 0.95.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agent.model import ShownFrame
from agent.question import Video

if TYPE_CHECKING:
    from index.library import Library
    from index.rows import FrameVectors, Hit, TranscriptRow, VideoRow

EmbedText = Callable[[list[str]], NDArray[np.float32]]
Floats = NDArray[np.float64]

CALIBRATION_CENTRE = 4.0
SAME_DISTANCE_SHARE = 1.4826
"""Standard deviations in one median absolute deviation of a normal distribution."""


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

    def __init__(self, library: Library, videos: Sequence[VideoRow], embed_text: EmbedText) -> None:
        self.library = library
        self._rows = tuple(videos)
        self.videos = tuple(Video(row.video_id, row.title, row.start_s, row.duration_s) for row in videos)
        self.index_frames = sum(row.frames for row in videos)
        self.space = str(library.fingerprint)
        self._embed_text = embed_text
        self._vectors: dict[str, FrameVectors] = {}
        self._text_vectors: dict[str, NDArray[np.float32]] = {}
        self._similarities: dict[tuple[str, str], Floats] = {}

    def vectors(self, video_id: str) -> FrameVectors:
        """All frame vectors of a video, in time order; read from the library the first time only."""
        if video_id not in self._vectors:
            self._vectors[video_id] = self.library.vectors(video_id)
        return self._vectors[video_id]

    def times(self, video_id: str) -> Floats:
        """Times of the stored frames of a video, ascending."""
        return self.vectors(video_id).time_s

    def embed_text(self, text: str) -> NDArray[np.float32]:
        """Unit vector of a text in the library's space."""
        if text not in self._text_vectors:
            self._text_vectors[text] = self._embed_text([text])[0]
        return self._text_vectors[text]

    def similarities(self, text: str, video_id: str) -> Floats:
        """Calibrated similarity of every stored frame of a video to a text, 0..1, in time order."""
        key = (text, video_id)
        if key not in self._similarities:
            cosines = self.vectors(video_id).vectors.astype(np.float32) @ self.embed_text(text)
            self._similarities[key] = calibrate(cosines.astype(np.float64))
        return self._similarities[key]

    def search(self, text: str, video_id: str, k: int, min_gap_s: float) -> list[Match]:
        """The `k` frames of a video that match a text best, no two closer than `min_gap_s`, best first."""
        similarities, stored = self.similarities(text, video_id), self.vectors(video_id)
        free = np.ones(len(similarities), dtype=bool)
        found: list[Match] = []
        for at in np.argsort(-similarities, kind="stable"):
            if len(found) == k:
                break
            if free[at]:
                free &= np.abs(stored.time_s - stored.time_s[at]) >= min_gap_s
                found.append(Match(video_id, int(stored.frame_no[at]), float(stored.time_s[at]),
                                   float(similarities[at]), text))
        return found

    def search_transcript(self, text: str, k: int) -> list[Hit]:
        """The `k` transcript lines that match a text best."""
        from index.rows import Scope

        return self.library.search_transcript(text, Scope(tuple(video.video_id for video in self.videos)), k)

    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]:
        """What is said in [start_s, end_s)."""
        return self.library.transcript(video_id, start_s, end_s)

    def nearest(self, texts: Sequence[str], count: int) -> Environment:
        """This environment, of more than `count` videos only those whose frames match the texts best.

        Found by the library's index over all videos, so that the vectors of a large library are never all read.
        """
        if len(self.videos) <= count:
            return self
        from index.rows import Scope

        everywhere = Scope(tuple(video.video_id for video in self.videos))
        best: dict[str, float] = {}
        for text in texts:
            for hit in self.library.search_frames(self.embed_text(text), everywhere, 4 * count, 10.0):
                best[hit.video_id] = max(hit.score, best.get(hit.video_id, hit.score))
        chosen = sorted(best, key=lambda video_id: -best[video_id])[:count]
        chosen += [row.video_id for row in self._rows if row.video_id not in best][: count - len(chosen)]
        rows = [row for row in self._rows if row.video_id in chosen]
        return Environment(self.library, rows, self._embed_text)

    def frames(self, video_id: str, times_s: Sequence[float] | Floats) -> tuple[ShownFrame, ...]:
        """The stored frames of a video nearest to some times, with pictures, in time order, each once."""
        if len(times_s) == 0:
            return ()
        stored = self.vectors(video_id)
        nearest = {int(np.argmin(np.abs(stored.time_s - time_s))) for time_s in times_s}
        rows = self.library.frames(video_id, [int(stored.frame_no[at]) for at in sorted(nearest)])
        return tuple(ShownFrame(row.video_id, row.frame_no, row.time_s, row.width_px, row.height_px, row.jpeg)
                     for row in rows)

    def shown_range(self, frame: ShownFrame) -> tuple[float, float]:
        """The time that a stored frame stands for: until the next one, or the video's end."""
        times = self.times(frame.video_id)
        later = times[times > frame.time_s]
        end_s = next(video.end_s for video in self.videos if video.video_id == frame.video_id)
        return frame.time_s, float(later[0]) if len(later) else end_s


def calibrate(cosines: Floats) -> Floats:
    """Bring one query's cosines over one video to 0..1; all alike gives 0 everywhere."""
    centre = float(np.median(cosines))
    deviation = SAME_DISTANCE_SHARE * float(np.median(np.abs(cosines - centre)))
    if deviation < 1e-6:
        deviation = float(np.std(cosines))
    if deviation < 1e-6:
        return np.zeros_like(cosines)
    away = np.clip((cosines - centre) / deviation - CALIBRATION_CENTRE, -50.0, 50.0)
    calibrated: Floats = 1.0 / (1.0 + np.exp(-away))
    return calibrated
