"""Cut a clip exactly: from the picture shown at its first instant to its last, encoded again as H.264 and AAC.

Several ranges of one video can become one clip, one range after another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.clock import Clock, file_clock
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.stream import open_container
from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.media.clip_check import inside_s, small_picture
from kinodex.pipeline.media.clip_file import ClipFile, Expected, nothing_there, removed_on_error
from kinodex.pipeline.media.encoding import (
    SOUND_HZ,
    TICK_S,
    add_pictures,
    encoded_frames,
    encoded_sound,
    order_s,
    player_frame,
)
from kinodex.pipeline.media.pictures import Shown, frames_from
from kinodex.pipeline.media.sound import choose_sound, only_sound, seek_sound, trimmed_sound

if TYPE_CHECKING:
    from av import AudioFrame
    from av.video.stream import VideoStream

WHOLE_PX = 1 << 16
"""Larger than any picture: it keeps its size."""
OPTIONS = {"preset": "veryfast", "crf": "18", "threads": "1", "bf": "0"}
"""Without B-frames the last picture sent is the last one shown, and is held as long as it says."""

Picture = tuple[float, float, NDArray[np.uint8]]
"""Start and end on the clip's clock in seconds, and the image [height, width, 3]."""


class _Place(NamedTuple):
    """A range of the video, and the time of the clip at which it begins."""

    number: int
    start_s: float
    end_s: float
    at_s: float


class _Made(NamedTuple):
    """When the last picture of a range ends, from the range's start, and its first and last picture in the clip."""

    end_s: float
    expected: tuple[Expected, ...]


def encode_ranges(
    path: Path, name: str, out: Path, ranges: Sequence[tuple[float, float]], search: bool = True
) -> list[ClipFile]:
    """Encode ranges `[start_s, end_s)` of a video, picture and sound, one after another into `out` (.mp4).

    Pictures are upright and have square pixels. The clip's clock begins at 0 with the first range; the first picture of
    each is the one that the video shows at its start. Each takes the time that it was given: one that reaches over the
    end of the video stands still there. Without `search` the video is decoded from its beginning. Returns an entry a
    range, in this order. Raises VideoError for a range without a picture or that cannot be encoded, and as
    `open_container`.
    """
    import av

    places, clock = _places(ranges), file_clock(path, name)
    made: list[_Made] = []
    shapes: list[Fraction] = []
    with removed_on_error(out), _explained(name):
        pictures = chain.from_iterable(
            _placed_pictures(path, name, place, clock, search, made, shapes) for place in places
        )
        first = next(pictures)
        has_track, heard = _has_sound(path, name), set[int]()
        with av.open(str(out), "w", format="mp4") as target:
            height_px, width_px, _ = first[2].shape
            video = add_pictures(target, "libx264", OPTIONS, width_px, height_px)
            frames = (player_frame(rgb, video, start_s, until_s) for start_s, until_s, rgb in chain([first], pictures))
            parts = [encoded_frames(video, frames)]
            if has_track:
                samples = chain.from_iterable(_sound(path, name, place, clock, heard) for place in places)
                parts.append(encoded_sound(target.add_stream("aac", rate=SOUND_HZ, layout="stereo"), samples))
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
    return [
        ClipFile(out, place.start_s, place.start_s + each.end_s, "encoded", place.number in heard, each.expected)
        for place, each in zip(places, made, strict=True)
    ]


def _places(ranges: Sequence[tuple[float, float]]) -> list[_Place]:
    begins_s = accumulate((end_s - start_s for start_s, end_s in ranges), initial=0.0)
    return [
        _Place(number, start_s, end_s, at_s)
        for number, ((start_s, end_s), at_s) in enumerate(zip(ranges, begins_s, strict=False))
    ]


def _placed_pictures(
    path: Path, name: str, place: _Place, clock: Clock, search: bool, made: list[_Made], shapes: list[Fraction]
) -> Iterator[Picture]:
    """Yield the pictures of one range on the clip's clock; `made` gets what there is to know of the range.

    All pictures of a clip have the shape of its first, which `shapes` gets.
    """
    first: Picture | None = None
    with ExitStack() as opened:
        shown = frames_from(opened, lambda: open_container(path, name), name, place.start_s, clock, search)
        for picture in _pictures(*shown, place, shapes):
            yield picture
            first, last = first or picture, picture
    if first is None:
        raise nothing_there(name, place.start_s)
    begin = Expected(first[0] + inside_s(*first[:2]), small_picture(first[2]))
    end = Expected(last[1] - inside_s(*last[:2]), small_picture(last[2]))
    made.append(_Made(last[1] - place.at_s, (begin, end)))


def _pictures(
    stream: VideoStream, frames: Iterable[Shown], aspects: PixelAspects, place: _Place, shapes: list[Fraction]
) -> Iterator[Picture]:
    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), WHOLE_PX, WHOLE_PX)
    shift_s = place.at_s - place.start_s
    for begin, until, frame in frames:
        if place.end_s - begin < TICK_S:
            return
        if not shapes:
            shapes.append(aspects.of(frame) or stream.sample_aspect_ratio or Fraction(1))
        rgb = to_rgb(frame, shapes[0])
        yield max(float(begin) + shift_s, place.at_s), min(float(until), place.end_s) + shift_s, rgb


@contextmanager
def _explained(name: str) -> Iterator[None]:
    from av import FFmpegError

    try:
        yield
    except FFmpegError as error:
        if isinstance(error, MemoryError):  # says nothing about the video
            raise
        raise VideoError(f"{name}: it cannot be encoded ({error.strerror}); choose another range") from error


def _has_sound(path: Path, name: str) -> bool:
    with open_container(path, name) as source:
        return choose_sound(source) is not None


def _sound(path: Path, name: str, place: _Place, clock: Clock, heard: set[int]) -> Iterator[AudioFrame]:
    """Yield the sound of one range on the clip's clock; `heard` gets its number if there is some."""
    with open_container(path, name) as source:
        sound = only_sound(source)
        if sound is None:
            return
        seek_sound(source, sound, place.start_s, clock)
        for frame in trimmed_sound(source, sound, clock, place.start_s, place.end_s, place.at_s):
            heard.add(place.number)
            yield frame
