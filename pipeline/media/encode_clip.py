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

from pipeline.decoding.video_stream import open_container
from pipeline.errors import VideoError
from pipeline.images.convert import rgb_scaler
from pipeline.media.check_clip import expected_first, expected_last, small_picture
from pipeline.media.clip import ClipFile, Expected, choose_sound, nothing_there, removed_on_error
from pipeline.media.player_form import (
    SOUND_HZ,
    TICK_S,
    add_pictures,
    encoded_frames,
    encoded_sound,
    order_s,
    player_frame,
)
from pipeline.media.timed_frames import Shown, frames_from, trimmed_sound

if TYPE_CHECKING:
    from av import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
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

    places = _places(ranges)
    made: list[_Made] = []
    with removed_on_error(out), _explained(name):
        pictures = chain.from_iterable(_placed_pictures(path, name, place, search, made) for place in places)
        first = next(pictures)
        with av.open(str(out), "w", format="mp4") as target, open_container(path, name) as source:
            sound = choose_sound(source)
            height_px, width_px, _ = first[2].shape
            video = add_pictures(target, "libx264", OPTIONS, width_px, height_px)
            frames = (player_frame(rgb, video, start_s, until_s) for start_s, until_s, rgb in chain([first], pictures))
            parts = [encoded_frames(video, frames)]
            if sound is not None:
                samples = chain.from_iterable(_sound(source, sound, place) for place in places)
                parts.append(encoded_sound(target.add_stream("aac", rate=SOUND_HZ, layout="stereo"), samples))
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
    return [
        ClipFile(out, place.start_s, place.start_s + each.end_s, "encoded", sound is not None, each.expected)
        for place, each in zip(places, made, strict=True)
    ]


def _places(ranges: Sequence[tuple[float, float]]) -> list[_Place]:
    """Place the ranges one after another."""
    begins_s = accumulate((end_s - start_s for start_s, end_s in ranges), initial=0.0)
    return [
        _Place(number, start_s, end_s, at_s)
        for number, ((start_s, end_s), at_s) in enumerate(zip(ranges, begins_s, strict=False))
    ]


def _placed_pictures(path: Path, name: str, place: _Place, search: bool, made: list[_Made]) -> Iterator[Picture]:
    """Yield the pictures of one range on the clip's clock; `made` gets what there is to know of the range."""
    first: Picture | None = None
    with ExitStack() as opened:
        stream, frames = frames_from(opened, lambda: open_container(path, name), name, place.start_s, search)
        for picture in _pictures(stream, frames, place):
            yield picture
            first, last = first or picture, picture
    if first is None:
        raise nothing_there(name, place.start_s)
    ends = expected_first(*first[:2], small_picture(first[2])), expected_last(*last[:2], small_picture(last[2]))
    made.append(_Made(last[1] - place.at_s, ends))


def _pictures(stream: VideoStream, frames: Iterable[Shown], place: _Place) -> Iterator[Picture]:
    """Yield what is shown within the range."""
    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), WHOLE_PX, WHOLE_PX)
    shift_s = place.at_s - place.start_s
    for begin, until, frame in frames:
        if place.end_s - begin < TICK_S:
            return
        yield max(float(begin) + shift_s, place.at_s), min(float(until), place.end_s) + shift_s, to_rgb(frame)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    from av import FFmpegError

    try:
        yield
    except FFmpegError as error:
        if isinstance(error, MemoryError):  # says nothing about the video
            raise
        raise VideoError(f"{name}: it cannot be encoded ({error.strerror}); choose another range") from error


def _sound(source: InputContainer, sound: AudioStream, place: _Place) -> Iterator[AudioFrame]:
    """Yield the sound of a range, cut to the sample, on the clip's clock."""
    source.seek(max(0, round(place.start_s / (sound.time_base or 1))), stream=sound, backward=True)
    sound.codec_context.flush_buffers()
    yield from trimmed_sound(source, sound, place.start_s, place.end_s, place.at_s)
