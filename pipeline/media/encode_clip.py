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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.video_stream import choose_stream, open_container
from pipeline.errors import NothingDecodes
from pipeline.images.convert import rgb_scaler
from pipeline.media.clip import ClipFile, choose_sound, nothing_there, removed_on_error
from pipeline.media.copy_clip import seek_key_frame
from pipeline.media.player_form import SOUND_HZ, TICK_S, add_pictures, encoded_sound, order_s, player_frame
from pipeline.media.timed_frames import timed_frames, trimmed_sound

if TYPE_CHECKING:
    from av import AudioFrame, Packet
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

WHOLE_PX = 1 << 16
"""Larger than any picture: it keeps its size."""
OPTIONS = {"preset": "veryfast", "crf": "18", "threads": "1"}

Picture = tuple[float, float, NDArray[np.uint8]]
"""Start and end on the clip's clock in seconds, and the image [height, width, 3]."""


class _Place(NamedTuple):
    """A range of the video, and the time of the clip at which it begins."""

    number: int
    start_s: float
    end_s: float
    at_s: float


def encode_ranges(path: Path, name: str, out: Path, ranges: Sequence[tuple[float, float]]) -> list[ClipFile]:
    """Encode ranges `[start_s, end_s)` of a video, picture and sound, one after another into `out` (.mp4).

    Pictures are upright and have square pixels. The clip's clock begins at 0 with the first range; the first picture of
    each is the one that the video shows at its start. Each takes the time that it was given: one that reaches over the
    end of the video stands still there. Returns an entry a range, in this order. Raises VideoError for a range without
    a picture, and as `open_container`.
    """
    import av

    places = _places(ranges)
    ends_s = [0.0] * len(ranges)
    with removed_on_error(out):
        pictures = chain.from_iterable(_placed_pictures(path, name, place, ends_s) for place in places)
        first = next(pictures)
        with av.open(str(out), "w", format="mp4") as target, open_container(path, name) as source:
            sound = choose_sound(source)
            height_px, width_px, _ = first[2].shape
            video = add_pictures(target, "libx264", OPTIONS, width_px, height_px)
            parts = [_encoded_pictures(video, chain([first], pictures))]
            if sound is not None:
                samples = chain.from_iterable(_sound(source, sound, place) for place in places)
                parts.append(encoded_sound(target.add_stream("aac", rate=SOUND_HZ, layout="stereo"), samples))
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
    return [
        ClipFile(out, place.start_s, place.start_s + end_s, "encoded", sound is not None)
        for place, end_s in zip(places, ends_s, strict=True)
    ]


def _places(ranges: Sequence[tuple[float, float]]) -> list[_Place]:
    """Place the ranges one after another."""
    begins_s = accumulate((end_s - start_s for start_s, end_s in ranges), initial=0.0)
    return [
        _Place(number, start_s, end_s, at_s)
        for number, ((start_s, end_s), at_s) in enumerate(zip(ranges, begins_s, strict=False))
    ]


def _placed_pictures(path: Path, name: str, place: _Place, ends_s: list[float]) -> Iterator[Picture]:
    """Yield the pictures of one range on the clip's clock; `ends_s` keeps when the range's last one ends, from 0."""
    with _pictures(path, name, place.start_s, place.end_s) as pictures:
        for start_s, until_s, rgb in pictures:
            ends_s[place.number] = until_s
            yield place.at_s + start_s, place.at_s + until_s, rgb
    if not ends_s[place.number]:
        raise nothing_there(name, place.start_s)


@contextmanager
def _pictures(path: Path, name: str, start_s: float, end_s: float) -> Iterator[Iterator[Picture]]:
    from av import FFmpegError

    with ExitStack() as opened:
        source = opened.enter_context(open_container(path, name))
        stream = choose_stream(source, name)
        try:
            seek_key_frame(source, stream, name, start_s)
        except (FFmpegError, NothingDecodes):  # all of it is decoded, from its beginning
            source = opened.enter_context(open_container(path, name))
            stream = choose_stream(source, name)
        yield _shown(source, stream, start_s, end_s)


def _shown(source: InputContainer, stream: VideoStream, start_s: float, end_s: float) -> Iterator[Picture]:
    """Yield what is shown within `[start_s, end_s)`."""
    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), WHOLE_PX, WHOLE_PX)
    for begin, until, frame in timed_frames(source, stream):
        if end_s - begin < TICK_S:
            return
        if until - start_s > TICK_S:  # times are fractions, and a range is two floats
            yield max(float(begin) - start_s, 0.0), min(float(until), end_s) - start_s, to_rgb(frame)


def _encoded_pictures(stream: VideoStream, pictures: Iterable[Picture]) -> Iterator[Packet[Any]]:
    for start_s, until_s, rgb in pictures:
        yield from stream.encode(player_frame(rgb, stream, start_s, until_s))
    yield from stream.encode()


def _sound(source: InputContainer, sound: AudioStream, place: _Place) -> Iterator[AudioFrame]:
    """Yield the sound of a range, cut to the sample, on the clip's clock."""
    source.seek(max(0, round(place.start_s / (sound.time_base or 1))), stream=sound, backward=True)
    sound.codec_context.flush_buffers()
    yield from trimmed_sound(source, sound, place.start_s, place.end_s, place.at_s)
