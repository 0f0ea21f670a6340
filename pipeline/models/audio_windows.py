"""Decode the sound of a video: mono samples with their times, in windows short enough for a speech model.

`voice_activity` cuts windows where somebody speaks; those of here hold all sound, for who does without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.video_stream import open_container
from pipeline.errors import SoundError

if TYPE_CHECKING:
    from av import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer

RATE_HZ = 16_000
WINDOW_S = 30.0
CUT_FROM_S = 20.0
BLOCK_S = 0.1
FRUITLESS_READS = 32  # demuxer errors in a row before the rest of the file is given up
GAP_TO_BELIEVE_S = 0.2
"""Timestamps of sound jitter by a packet or two; a larger step is a real gap, or sound that starts again."""

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of sound: samples `[n]` from -1 to 1 at `RATE_HZ`, the first at the presentation time `start_s`.

    `speech` are the half-open ranges of it in which somebody speaks, in the video's time; None where nobody looked.
    """

    start_s: float
    samples: Samples
    speech: tuple[tuple[float, float], ...] | None = None

    @property
    def end_s(self) -> float:
        """Presentation time of the end of the last sample."""
        return self.start_s + len(self.samples) / RATE_HZ

    def between(self, start_s: float, end_s: float) -> Samples:
        """Return the samples in `[start_s, end_s)` of the video's time."""
        first, last = (max(round((time_s - self.start_s) * RATE_HZ), 0) for time_s in (start_s, end_s))
        return self.samples[first:last]


def sound_windows(path: Path, name: str, playlist: bool = False) -> Iterator[Sound]:
    """Yield the sound of a local file in windows of at most `WINDOW_S`, in order; none where it has no sound track.

    A window ends where its last third is quietest, so that few words are cut in two. No more than a window is in
    memory. Raises what `sound_pieces` raises.
    """
    yield from _join_windows(sound_pieces(path, name, playlist))


def sound_pieces(path: Path, name: str, playlist: bool = False) -> Iterator[Sound]:
    """Yield the sound of a local file in order, in the short pieces in which it is decoded; nothing if it has none.

    A piece begins where the one before it ends, but for gaps of the sound itself.

    Raises:
        SourceMissing, SourceForbidden, EmptyFile, NotAVideo: the file cannot be opened.
        SoundError: there is a sound track, and nothing of it decodes.
    """
    with open_container(path, name, playlist) as container:
        stream = _choose_track(container)
        if stream is None:
            return
        has_sound = False
        for piece in _follow(_resample(_decode(container, stream))):
            has_sound = True
            yield piece
    if not has_sound:
        raise SoundError(f"{name}: nothing of its sound track decodes; re-encode it, for example to AAC")


def _choose_track(container: InputContainer) -> AudioStream | None:
    """Choose the sound track that a player would play: the default one, else the first. Nothing else is demuxed."""
    from av.stream import Discard, Disposition

    tracks = [stream for stream in container.streams.audio if stream.codec_context is not None]
    chosen = max(tracks, key=lambda stream: bool(stream.disposition & Disposition.default), default=None)
    for other in container.streams:
        if chosen is None or other.index != chosen.index:
            other.discard = Discard.all
    return chosen


def _decode(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """Yield frames of sound; packets that cannot be read or decoded are left out."""
    from av import FFmpegError

    fruitless = 0
    while fruitless < FRUITLESS_READS:
        try:
            for packet in container.demux(stream):
                fruitless = 0
                with suppress(FFmpegError):
                    yield from stream.decode(packet)
            return
        except FFmpegError:
            fruitless += 1


def _resample(frames: Iterable[AudioFrame]) -> Iterator[Sound]:
    """Resample frames to mono at `RATE_HZ`; from a change of format on, with a new resampler."""
    import av

    resampler, current = None, None
    for frame in frames:
        form = frame.format.name, frame.layout.name, frame.sample_rate
        if form != current:
            yield from _sounds([] if resampler is None else resampler.resample(None))
            resampler, current = av.AudioResampler(format="flt", layout="mono", rate=RATE_HZ), form
        assert resampler is not None
        yield from _sounds(resampler.resample(frame))
    yield from _sounds([] if resampler is None else resampler.resample(None))


def _sounds(frames: Iterable[AudioFrame]) -> Iterator[Sound]:
    for frame in frames:
        start_s = float("nan") if frame.time is None else float(frame.time)
        yield Sound(start_s, frame.to_ndarray()[0].astype(np.float32, copy=False))


def _follow(sounds: Iterable[Sound]) -> Iterator[Sound]:
    """Let each piece begin where the one before it ends, unless its own time says that there is a gap."""
    start_s, count = 0.0, 0  # of the sound since the last gap: sums of many short pieces would drift
    for sound in sounds:
        expected_s = start_s + count / RATE_HZ
        if abs(sound.start_s - expected_s) > GAP_TO_BELIEVE_S:  # never true of a piece without a time
            start_s, count, expected_s = sound.start_s, 0, sound.start_s
        count += len(sound.samples)
        if len(sound.samples):
            yield Sound(expected_s, sound.samples)


def stretches(pieces: Iterable[Sound], least: int) -> Iterator[tuple[Sound, bool]]:
    """Join pieces to stretches of `least` samples or more; True with those that the sound goes on after.

    The last one before a gap or the end, which may be shorter or empty, comes with False.
    """
    waiting: list[Samples] = []
    start_s, count = 0.0, 0
    for piece in pieces:
        if abs(piece.start_s - (start_s + count / RATE_HZ)) > GAP_TO_BELIEVE_S / 2:
            yield Sound(start_s, _concatenate(waiting)), False
            waiting, start_s, count = [], piece.start_s, 0
        if count >= least:
            yield Sound(start_s, _concatenate(waiting)), True
            waiting, start_s, count = [], piece.start_s, 0
        waiting.append(piece.samples)
        count += len(piece.samples)
    yield Sound(start_s, _concatenate(waiting)), False


def _join_windows(pieces: Iterable[Sound]) -> Iterator[Sound]:
    """Join pieces to windows; where time jumps, a new window begins."""
    rest = Sound(0.0, _concatenate([]))
    for sound, goes_on in stretches(pieces, round(WINDOW_S * RATE_HZ)):
        start_s = rest.start_s if len(rest.samples) else sound.start_s
        *whole, rest = _cut_windows(Sound(start_s, np.concatenate([rest.samples, sound.samples])))
        yield from whole
        if not goes_on:
            if len(rest.samples):
                yield rest
            rest = Sound(0.0, _concatenate([]))


def _cut_windows(sound: Sound) -> Iterator[Sound]:
    """Yield windows off the front of a sound while it is longer than one; then the rest, which may be empty."""
    while len(sound.samples) >= WINDOW_S * RATE_HZ:
        place = _quietest_place(sound.samples)
        yield Sound(sound.start_s, sound.samples[:place])
        sound = Sound(sound.start_s + place / RATE_HZ, sound.samples[place:])
    yield sound


def _quietest_place(samples: Samples) -> int:
    """Find the middle of the quietest tenth of a second in the last third of the first window."""
    block = round(BLOCK_S * RATE_HZ)
    first, last = round(CUT_FROM_S * RATE_HZ), round(WINDOW_S * RATE_HZ)
    energies = np.square(samples[first:last].reshape(-1, block)).sum(axis=1)
    return first + int(np.argmin(energies)) * block + block // 2


def _concatenate(parts: Sequence[Samples]) -> Samples:
    return np.concatenate(parts) if parts else np.empty(0, np.float32)
