"""Decode one video and hand out the frame that is shown at each sample instant, with its exact time.

**Time.** A frame's time is FFmpeg's best-effort timestamp, the one that ffprobe prints: the presentation
timestamp, or the decoding timestamp where the former is missing or wrong more often. FFmpeg's decoders
give frames in the order of presentation, so that order is believed over the timestamps:

- no timestamp: the previous time plus the frame duration;
- the same time as the previous frame: it takes that frame's place;
- up to a second earlier than the previous frame: it was due in the past, is never shown, and is left out;
- more than a second earlier, or more than a day later: the clock was set anew (a joined or damaged
  stream), so time goes on from the previous frame by one frame duration.

**Damage.** A packet that cannot be read or decoded is counted and left out; what follows is still used.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import skipping
from pipeline.errors import (
    EmptyFile,
    NotAVideo,
    NothingDecodes,
    NoVideoStream,
    SourceForbidden,
    SourceMissing,
)
from pipeline.facts import VideoFacts
from pipeline.pictures import display_size, rotation_deg

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

BACK_TO_BELIEVE_S = 1
GAP_TO_BELIEVE_S = 24 * 3600
FRUITLESS_READS = 32  # demuxer errors in a row before the rest of the file is given up
NOMINAL_FRAME_S = Fraction(1, 25)  # where neither the frame nor the stream says how long a frame lasts

# Only local bytes, whatever a playlist inside them names; and no presentation times that the demuxer guesses
# where the file has none (for AVI with B-frames it guesses wrong).
OPEN_OPTIONS = {"protocol_whitelist": "file", "fflags": "-genpts"}
# FFmpeg opens these for almost any bytes or for one still picture; none of them is a video.
NO_VIDEO_FORMATS = frozenset({"tty", "image2", "bin", "xbin", "adf", "idf", "rawvideo"})


@dataclass(frozen=True, slots=True)
class Sample:
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`."""

    number: int
    time_s: float
    frame: VideoFrame


@contextmanager
def open_video(path: Path, name: str | None = None) -> Iterator[VideoReader]:
    """Open `path` for one pass over its frames; messages call it `name`.

    Raises:
        VideoError: there is nothing to decode in it; see `pipeline.errors`.
        SourceMissing, SourceForbidden: the file cannot be read.
    """
    name = name or path.name
    container = _open_container(path, name)
    try:
        yield VideoReader(container, name)
    finally:
        container.close()


def probe(path: Path, name: str | None = None) -> VideoFacts:
    """The facts of a video: opens it, decodes one frame, closes it. Raises as `open_video`."""
    with open_video(path, name) as video:
        return video.facts


class VideoReader:
    """One pass over one video. `decode_errors`, `start_s` and `end_s` are final when `samples` has ended."""

    def __init__(self, container: InputContainer, name: str) -> None:
        self._container = container
        self._stream = _choose_stream(container, name)
        self.decode_errors = 0
        self._rate = Fraction(0)  # samples a second, once asked for
        self._timed_frames = self._timed()
        first = next(self._timed_frames, None)
        if first is None:
            raise NothingDecodes(
                f"{name}: the {self._stream.codec_context.name} video stream gives not one frame "
                f"({self.decode_errors} errors); make the file anew from its source"
            )
        self._first = first
        self.facts = _facts(container, self._stream, first[1])
        self.start_s = self.end_s = float(first[0])

    def samples(self, fps: float) -> Generator[Sample, None, None]:
        """Each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its
        own duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so
        gaps of any length are free.
        """
        self._rate = Fraction(fps).limit_denominator(1_000_000)
        time, shown = self._first
        for next_time, next_frame in self._timed_frames:
            number = self._instant(time, next_time)
            if number is not None:
                yield Sample(number, float(time), shown)
            time, shown = next_time, next_frame
        end = time + self._frame_s(shown)
        number = self._instant(time, end)
        if number is not None:
            yield Sample(number, float(time), shown)
        self.end_s = float(end)

    def _instant(self, time: Fraction, until: Fraction) -> int | None:
        """The first `k` of which the instant `start + k / rate` is in `[time, until)`, if there is one."""
        rate, start = self._rate, self._first[0]
        number = math.ceil((time - start) * rate)
        return number if number < (until - start) * rate else None

    def _timed(self) -> Iterator[tuple[Fraction, VideoFrame]]:
        """Frames with their times in seconds, never falling; see the module's rules."""
        guess, shift = _BestEffort(), Fraction(0)
        last: tuple[Fraction, VideoFrame] | None = None
        for frame in self._frames():
            self.decode_errors += frame.is_corrupt
            stamp = guess(frame.pts, frame.dts)
            if last is None:
                time = (stamp or 0) * self._time_base
            else:
                follow_on = last[0] + self._frame_s(last[1])
                time = follow_on if stamp is None else stamp * self._time_base + shift
                if not -BACK_TO_BELIEVE_S <= time - last[0] <= GAP_TO_BELIEVE_S:
                    shift += follow_on - time
                    time = follow_on
                if time < last[0]:
                    continue
            last = (time, frame)
            yield last

    def _frames(self) -> Iterator[VideoFrame]:
        from av import FFmpegError

        context = self._stream.codec_context
        context.thread_count = 1  # a video a core is the best use of cores; see the notes on speed
        skips = context.codec.canonical_name in skipping.CODECS
        packets = skipping.needed(self._packets(), self._is_shown) if skips else ((p, True) for p in self._packets())
        for packet, is_needed in packets:
            context.skip_frame = "DEFAULT" if is_needed or self.decode_errors else "NONREF"
            try:
                yield from self._stream.decode(packet)
            except FFmpegError:
                self.decode_errors += 1

    def _packets(self) -> Iterator[Packet[VideoStream] | None]:
        """Packets of the stream to its end, then an empty one that drains the decoder."""
        from av import FFmpegError

        fruitless = 0
        while fruitless < FRUITLESS_READS:
            try:
                for packet in self._container.demux(self._stream):
                    fruitless = 0
                    yield packet
                return
            except FFmpegError:
                self.decode_errors += 1
                fruitless += 1
        yield None

    def _is_shown(self, pts: int, until_pts: int) -> bool:
        """Whether a frame with this range of presentation times is a sample; true until it is known."""
        base = self._time_base
        return self._rate == 0 or self._instant(pts * base, until_pts * base) is not None

    @property
    def _time_base(self) -> Fraction:
        return self._stream.time_base or Fraction(1, 1_000_000)

    def _frame_s(self, frame: VideoFrame) -> Fraction:
        """How long a frame lasts by its own account, else by the stream's rate."""
        claimed = frame.duration * self._time_base
        if 0 < claimed <= GAP_TO_BELIEVE_S:
            return claimed
        rate = self._stream.average_rate
        return 1 / rate if rate else NOMINAL_FRAME_S


class _BestEffort:
    """FFmpeg's best-effort timestamp: whichever of pts and dts has run backwards less often so far."""

    def __init__(self) -> None:
        self.last_pts = self.last_dts = -math.inf
        self.faulty_pts = self.faulty_dts = 0

    def __call__(self, pts: int | None, dts: int | None) -> int | None:
        if dts is not None:
            self.faulty_dts += dts <= self.last_dts
            self.last_dts = dts
        elif pts is not None:
            self.last_dts = pts
        if pts is not None:
            self.faulty_pts += pts <= self.last_pts
            self.last_pts = pts
        elif dts is not None:
            self.last_pts = dts
        use_pts = pts is not None and (self.faulty_pts <= self.faulty_dts or dts is None)
        return pts if use_pts else dts


def _open_container(path: Path, name: str) -> InputContainer:
    import av

    try:
        if not path.exists():
            raise SourceMissing(f"{name}: no such file; check the path")
        if path.stat().st_size == 0:
            raise EmptyFile(f"{name}: the file is empty (0 bytes); copy or download it again")
        container = av.open(f"file:{path}", container_options=OPEN_OPTIONS, metadata_errors="replace")
    except PermissionError as error:
        raise SourceForbidden(f"{name}: reading is not permitted; ask for the right to read it") from error
    except av.FFmpegError as error:
        raise NotAVideo(
            f"{name}: no video container that FFmpeg can read ({error.strerror}); "
            "give a media file such as mp4, mkv, webm, mov, avi or ts"
        ) from error
    if container.format.name in NO_VIDEO_FORMATS or container.format.name.endswith("_pipe"):
        kind = container.format.name
        container.close()
        raise NotAVideo(f"{name}: looks like {kind}, text or a still picture, not a video; give a media file")
    return container


def _choose_stream(container: InputContainer, name: str) -> VideoStream:
    """The moving picture: never cover art or thumbnails; the default one first, then the largest."""
    from av.stream import Discard, Disposition

    still = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
    moving = [s for s in container.streams.video if not s.disposition & still]
    if not moving:
        kinds = {"cover art" if s.type == "video" else s.type for s in container.streams}
        held = " and ".join(sorted(kinds)) or "no stream at all"
        raise NoVideoStream(f"{name}: holds {held} but no video stream; give a file with moving pictures")
    decodable = [s for s in moving if s.codec_context is not None]
    if not decodable:
        raise NothingDecodes(f"{name}: no decoder for its video codec; re-encode it, for example to H.264")
    chosen = max(
        decodable,
        key=lambda s: (bool(s.disposition & Disposition.default), s.width * s.height),
    )
    for other in container.streams:
        if other.index != chosen.index:
            other.discard = Discard.all
    return chosen


def _facts(container: InputContainer, stream: VideoStream, frame: VideoFrame) -> VideoFacts:
    aspect = stream.sample_aspect_ratio or Fraction(1)
    width_px, height_px = display_size(frame, aspect)
    duration = (
        stream.duration * (stream.time_base or 0)
        if stream.duration
        else Fraction(container.duration, 1_000_000)
        if container.duration
        else None
    )
    arbitrary_clock = container.format.name in ("mpegts", "mpeg")
    return VideoFacts(
        container=container.format.name,
        stream_index=stream.index,
        codec=stream.codec_context.codec.canonical_name,
        pix_fmt=frame.format.name,
        width_px=width_px,
        height_px=height_px,
        sample_aspect_ratio=float(aspect),
        rotation_deg=rotation_deg(frame),
        fps=float(stream.average_rate) if stream.average_rate else None,
        claimed_duration_s=None if duration is None else float(duration),
        zero_s=(container.start_time or 0) / 1_000_000 if arbitrary_clock else 0.0,
        interlaced=frame.interlaced_frame,
        has_audio=bool(container.streams.audio),
    )
