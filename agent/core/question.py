"""Questions, and the parts of videos that requests are about."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent.core.reply_values import says_nothing
from agent.errors import BadQuestion, InvalidReply

MAX_OPTIONS = 26
LEAST_PREFIX = 4
VIDEOS_NAMED = 5
VIDEO_ID_LENGTH = 12
"""The number of characters of a video's id that name it to a model."""
EXACT_S = 1e-6
"""Times that differ by less are one."""
LISTED = 20
"""Candidates that a prompt lists at all."""
LATER = {"later": True}
"""Metadata of a field that older traces do not have: while it has its default, requests keep their keys."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A question that was answered before in the same conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, open-ended (no options) or multiple-choice (2 to 26 distinct options), perhaps after `earlier` ones.

    Raises `BadQuestion` for an empty text, one option, too many, empty or repeated options, and halves of characters.
    """

    text: str
    options: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and all(isinstance(each, str) for each in self.options)):
            raise BadQuestion(f"got {(self.text, *self.options)!r:.80}; a question and its options are texts")
        if not self.text.strip():
            raise BadQuestion("the question is empty; write what you want to know about the video")
        if len(self.options) == 1 or len(self.options) > MAX_OPTIONS:
            got = f"got {len(self.options)} option" + "s" * (len(self.options) > 1)
            raise BadQuestion(
                f"{got}; a question has none (open-ended) or 2 to {MAX_OPTIONS}; give --option once for each"
            )
        if any(not option.strip() for option in self.options):
            raise BadQuestion("an option is empty; every option needs some text")
        folded = [option.strip().casefold() for option in self.options]
        repeated = next((option for option in folded if folded.count(option) > 1), None)
        if repeated is not None:
            raise BadQuestion(f"the option {repeated!r} is given more than once; options must differ")
        for text in (self.text, *self.options):
            _check_whole(text)

    @property
    def lettered(self) -> tuple[tuple[str, str], ...]:
        """Options with their letters: (("A", "red"), ("B", "blue"), ...)."""
        return tuple(zip(string.ascii_uppercase, self.options, strict=False))


def _check_whole(text: str) -> None:
    """Raise `BadQuestion` for a text that cannot be encoded: JSON and command lines accept such texts."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise BadQuestion(f"{text[:60]!r} holds {half!r}, which is half a character; write it in UTF-8") from error


@dataclass(frozen=True, slots=True)
class Video:
    """A video as an agent sees it: it covers [start_s, start_s + duration_s).

    Times are those that a player shows. Without pictures the library holds only words of it: captions or a transcript.
    """

    video_id: str
    title: str
    start_s: float
    duration_s: float
    has_pictures: bool = field(default=True, metadata=LATER)

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


def named_video(videos: Sequence[Video], name: str | None) -> Video:
    """The one of some videos that an id, its first digits or a title names; None is the only video.

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
    by_words: bool = field(default=False, metadata=LATER)


@dataclass(frozen=True, slots=True)
class Segment:
    """The range [start_s, end_s) of one video; `number` is unique within a run, whatever the nesting."""

    number: int
    video_id: str
    start_s: float
    end_s: float


SUBTITLE, SCREEN_TEXT, CAPTION = "subtitle", "screen text", "caption"
"""Sources of notes that quote what is said, text on screen and captions."""


@dataclass(frozen=True, slots=True)
class Note:
    """A finding about [start_s, end_s) of a video, in words; `source` is the tool or table that it is from.

    `confidence` is 0 to 1, None if it has none. A look that `failed` found nothing out: its note says why, and is no
    evidence for anything.
    """

    video_id: str
    start_s: float
    end_s: float
    source: str
    text: str
    confidence: float | None = None
    failed: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        # A line of a quotation must not look like a line of the prompt that quotes it.
        object.__setattr__(self, "text", " ".join(self.text.split()))


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
    rated: bool = field(default=True, metadata=LATER)

    @property
    def rank(self) -> float:
        """The score by which candidates are ordered; those without one come last."""
        return -1.0 if self.score is None else self.score


def listed_candidates(candidates: Iterable[ScoredSegment], scores: str) -> list[ScoredSegment]:
    """The candidates among which a model is asked to choose: those with the highest scores, the best first.

    Where no scores are shown (`scores` is "none") the latest ones: those of the present round could not be chosen else.
    """
    live = [each for each in candidates if each.explorable]
    return sorted(reversed(live) if scores == "none" else live, key=lambda each: -each.rank)[:LISTED]
