"""Things in frames, found and followed: by the library's detections, else by a detector, else by the index's vectors.

The library's detections count for a label if they hold any of it in these videos, in words of their own too
(`labels`): a detector that knows some labels says nothing of others. Where neither they nor a detector are at hand, the
vectors tell in which frames a label stands out from the rest of the video: there is no box then, the score is the
calibrated similarity (see `environment`), and a thing that is to be seen all the time does not stand out.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from kinodex.agent.errors import InvalidReply, OutOfBudget
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.session import Session
from kinodex.agent.tools.labels import Match, match_label
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import calibrate
from kinodex.index.pictures import stored_picture

if TYPE_CHECKING:
    from kinodex.index.rows import DetectionRow

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as parts of the width and height."""
Source = Literal["library", "detector", "index"]
T = TypeVar("T")
EVERYTHING = ""
"""The label that stands for all that is known."""
MIN_PRESENT_SIMILARITY = 1 / 3
"""The least similarity that counts as being there: three robust deviations, one of 740 unrelated frames."""
TRACKED_FRAMES = 32
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
ZOOMED_QUALITY = 95


@dataclass(frozen=True, slots=True)
class Detected:
    """A thing in a stored frame; `score` is 0 to 1. There is no `box` if the `source` is the index."""

    video_id: str
    frame_no: int
    time_s: float
    label: str
    score: float
    box: Box | None
    track_id: int | None
    source: Source


@dataclass(frozen=True, slots=True)
class Track:
    """One thing followed through a range; `score` is the mean of its sightings, which are in time order."""

    label: str
    start_s: float
    end_s: float
    score: float
    sightings: tuple[Detected, ...]


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The things found, perhaps none, who looked (`source`), and the `label` that stood for what was asked for.

    A `loose` label may mean another thing.
    """

    things: tuple[T, ...]
    source: Source
    label: str
    loose: bool = False


async def detect(session: Session, frames: Sequence[ShownFrame], label: str, within: Box = WHOLE) -> Found[Detected]:
    """Find a label in frames of one video, in time order, the surest first; only inside a box.

    Without a label everything is found that the library's detections, else a detector, know. Boxes are those of whole
    frames in any case. The index cannot look into a part of a frame, so where only it can tell, `within` changes
    nothing. Raises `InvalidReply` for an impossible box, and without a label where only the index can tell.
    """
    _check_box(within)
    if not frames:
        return Found((), "index", label)
    video_id, numbers = frames[0].video_id, {frame.frame_no for frame in frames}
    known = _known_label(session.environment, video_id, label)
    if known is not None:
        rows = session.environment.detections(video_id, label=known.label or None)
        things = [_from_row(row, "library") for row in rows if row.frame_no in numbers and _lies_in(row.box, within)]
        return Found(_in_order(things), "library", known.label, known.loose)
    detected = await _by_detector(session, frames, label, within)
    if detected is not None:
        return Found(_in_order(detected), "detector", label)
    _check_label(label)
    return Found(_in_order(_by_index(session.environment, video_id, label, numbers)), "index", label)


def _known_label(environment: Environment, video_id: str, label: str) -> Match | None:
    """Return the label of the library's detections that a text means.

    It is `EVERYTHING` if the text is blank and the video has labels.

    A label that only other videos have is known too, since then a detector looked for it here.
    """
    if not label.strip():
        return Match(EVERYTHING, loose=False) if environment.detection_labels(video_id) else None
    own = environment.detection_labels(video_id)
    best = match_label(environment, label, own)
    if own and (best is None or best.loose):
        known = match_label(environment, label, environment.detection_labels())
        best = known if known is not None and not known.loose else best
    return best


def _in_order(found: Iterable[Detected]) -> tuple[Detected, ...]:
    return tuple(sorted(found, key=lambda each: (each.time_s, -each.score)))


async def track(
    session: Session, video_id: str, label: str, start_s: float, end_s: float, count: int = TRACKED_FRAMES
) -> Found[Track]:
    """Follow things of a label through [start_s, end_s), the earliest first; a detector sees `count` frames at most.

    The index follows nothing: its tracks are the times in which the label stands out without a break. Raises
    `InvalidReply` for an empty label or a range that has nothing of the video.
    """
    _check_label(label)
    environment = session.environment
    video = environment.video(video_id)
    first_s, last_s = max(start_s, video.start_s), min(end_s, video.end_s)
    if not first_s < last_s:
        has = f"the video has {video.start_s:g} to {video.end_s:g} s"
        raise InvalidReply(f"the range {start_s:g} to {end_s:g} s is empty or elsewhere; {has}")
    start_s, end_s = first_s, last_s
    known = _known_label(environment, video_id, label)
    if known is not None:
        rows = environment.detections(video_id, start_s, end_s, known.label)
        tracks = _tracks(environment, [(row.model, _from_row(row, "library")) for row in rows], end_s)
        return Found(tracks, "library", known.label, known.loose)
    left = session.account.frames_left
    frames = environment.frames_between(video_id, start_s, end_s, count if left is None else min(count, max(left, 1)))
    detected = await _by_detector(session, frames, label, WHOLE)
    if detected is not None:
        return Found(_tracks(environment, [("", each) for each in detected], end_s), "detector", label)
    stored = environment.frame_times(video_id)
    inside = stored.frame_no[(stored.time_s >= start_s) & (stored.time_s < end_s)]
    tracks = _breaks(environment, _by_index(environment, video_id, label, set(inside.tolist())), end_s)
    return Found(tracks, "index", label)


def zoom(frame: ShownFrame, box: Box) -> ShownFrame:
    """Enlarge the part of a frame in a box to its longer side; raises `InvalidReply` for an impossible box."""
    from PIL import Image

    _check_box(box)
    enlarged = io.BytesIO()
    with stored_picture(frame.jpeg) as picture:
        width_px, height_px = picture.size
        left, top = math.floor(box[0] * width_px), math.floor(box[1] * height_px)
        right, bottom = math.ceil(box[2] * width_px), math.ceil(box[3] * height_px)
        part = picture.convert("RGB").crop((left, top, right, bottom))
        times = max(width_px, height_px) / max(part.size)
        part = part.resize(
            (max(1, round(part.width * times)), max(1, round(part.height * times))), Image.Resampling.BICUBIC
        )
        part.save(enlarged, "JPEG", quality=ZOOMED_QUALITY)
    return replace(frame, width_px=part.width, height_px=part.height, jpeg=enlarged.getvalue())


async def _by_detector(
    session: Session, frames: Sequence[ShownFrame], label: str, within: Box
) -> list[Detected] | None:
    """Run the environment's detector in a thread; None if there is no detector that knows the label.

    Without a label it looks for everything that it knows.

    A detector is a model that sees frames, so they are counted, and a spent budget stops it.
    """
    if session.environment.detect is None:
        return None
    left = session.account.frames_left
    unseen = {frame.frame_no for frame in frames}.difference(session.account.shown_frame_nos(frames[0].video_id))
    over = session.account.exhausted() or ("frames" if left is not None and len(unseen) > left else None)
    if over:
        raise OutOfBudget(over)
    seen = frames if within == WHOLE else [zoom(frame, within) for frame in frames]
    rows = await session.compute(session.environment.detect, seen, label)
    if rows is None:
        return None
    session.account.count_shown(frames)
    return [_from_row(replace(row, box=_outward(row.box, within)), "detector") for row in rows]


def _by_index(environment: Environment, video_id: str, label: str, frame_nos: Collection[int]) -> list[Detected]:
    """Return the frames of some numbers in which a label stands out from the rest of the video.

    Raises `InvalidReply` in a library without vectors.
    """
    if not environment.has_vectors:
        raise InvalidReply(
            f"nothing here can look for {label!r}: no detector, and no vectors of frames; look at frames"
        )
    stored, named = environment.frame_times(video_id), " ".join(label.lower().split())
    similarities = calibrate(environment.deviations([label], video_id))[:, 0]
    return [
        Detected(video_id, frame_no, time_s, named, similarity, None, None, "index")
        for frame_no, time_s, similarity in zip(
            stored.frame_no.tolist(), stored.time_s.tolist(), similarities.tolist(), strict=True
        )
        if frame_no in frame_nos and similarity >= MIN_PRESENT_SIMILARITY
    ]


def _from_row(row: DetectionRow, source: Source) -> Detected:
    return Detected(row.video_id, row.frame_no, row.time_s, row.label, row.score, row.box, row.track_id, source)


def _tracks(environment: Environment, found: Iterable[tuple[str, Detected]], end_s: float) -> tuple[Track, ...]:
    """Group sightings by the model that tracked them and its number; one without a number is a track by itself."""
    followed: dict[tuple[str, object], list[Detected]] = {}
    for model, each in found:
        track_key = (each.frame_no, each.box) if each.track_id is None else each.track_id
        followed.setdefault((model, track_key), []).append(each)
    tracks = [_track(environment, sightings, end_s) for sightings in followed.values()]
    return tuple(sorted(tracks, key=lambda each: (each.start_s, -each.score)))


def _breaks(environment: Environment, found: Sequence[Detected], end_s: float) -> tuple[Track, ...]:
    """Group sightings in stored frames that follow each other into tracks."""
    runs: list[list[Detected]] = []
    for each in found:
        if runs and environment.shown_until(each.video_id, runs[-1][-1].time_s) >= each.time_s:
            runs[-1].append(each)
        else:
            runs.append([each])
    return tuple(_track(environment, run, end_s) for run in runs)


def _track(environment: Environment, sightings: Sequence[Detected], end_s: float) -> Track:
    first, last = sightings[0], sightings[-1]
    until_s = min(end_s, environment.shown_until(last.video_id, last.time_s))
    score = sum(each.score for each in sightings) / len(sightings)
    return Track(first.label, first.time_s, until_s, score, tuple(sightings))


def _outward(box: Box, within: Box) -> Box:
    width, height = within[2] - within[0], within[3] - within[1]
    x0, y0, x1, y1 = box
    return within[0] + x0 * width, within[1] + y0 * height, within[0] + x1 * width, within[1] + y1 * height


def _lies_in(box: Box, within: Box) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return within[0] <= x <= within[2] and within[1] <= y <= within[3]


def _check_box(box: Sequence[float]) -> None:
    if len(box) != 4 or not (0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
        raise InvalidReply(f"the box {list(box)} is impossible; give [x0, y0, x1, y1] with 0 <= x0 < x1 <= 1, so y too")


def _check_label(label: str) -> None:
    if not label.strip():
        raise InvalidReply("the label is empty; name what is to be looked for in a word or two")
