"""Videos and their parts, as requests name them: matches, segments, and candidates of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.agent.errors import InvalidReply
from kinodex.agent.replies.values import says_nothing

LEAST_PREFIX = 4
VIDEOS_NAMED = 5
VIDEO_ID_LENGTH = 12
"""The number of characters of a video's id that name it to a model."""
EXACT_S = 1e-6
"""Times that differ by less are one."""


@dataclass(frozen=True, slots=True)
class Video:
    """A video as an agent sees it: it covers [start_s, start_s + duration_s).

    Times are those that a player shows. Without pictures the library holds only words of it: captions or a transcript.
    """

    video_id: str
    title: str
    start_s: float
    duration_s: float
    has_pictures: bool = True

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


def named_video(videos: Sequence[Video], name: str | None) -> Video:
    """Return the one of some videos that an id, its first digits or a title names; None is the only video.

    Raises `InvalidReply` if there is none, or several.
    """
    if len(videos) == 1 and says_nothing(name):
        return videos[0]
    text = (name or "").strip()
    named = [video for video in videos if text in (video.video_id, video.title)]
    if not named and len(text) >= LEAST_PREFIX:
        named = [video for video in videos if video.video_id.startswith(text)]
    if len(named) == 1:
        return named[0]
    some = ", ".join(video.video_id[:12] for video in videos[:VIDEOS_NAMED])
    more = ", ..." if len(videos) > VIDEOS_NAMED else ""
    raise InvalidReply(f"{name!r} names {len(named) or 'no'} video" + f"; the videos are {some}{more}")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A stored frame that a query matched, by its picture or by words at its time; `similarity` is 0 to 1."""

    video_id: str
    frame_no: int
    time_s: float
    similarity: float
    query: str
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """The range [start_s, end_s) of one video; `number` is unique within a run, whatever the nesting."""

    number: int
    video_id: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ScoredSegment:
    """A segment and its assessment: `score` from 0 to 1 (fused) or 0 to 100 (a reward), or None.

    `divided`: it was explored before, and its parts are candidates beside it. Without `rated` no model has scored it,
    and `score` is from its matches alone.
    """

    segment: Segment
    score: float | None
    explanation: str = ""
    explorable: bool = True
    divided: bool = False
    rated: bool = True

    @property
    def rank(self) -> float:
        return -1.0 if self.score is None else self.score
