"""The sound of a video: mono samples with their times, in windows for a speech model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.clock import Clock, file_clock
from kinodex.pipeline.decoding.stream import open_container, packets_to_end
from kinodex.pipeline.errors import SoundError
from kinodex.pipeline.media.sound import only_sound

if TYPE_CHECKING:
    from av import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer

RATE_HZ = 16_000
WINDOW_S = 30.0
CUT_FROM_S = 20.0
BLOCK_S = 0.1
GAP_TO_BELIEVE_S = 0.2
"""Timestamps of sound jitter by a packet or two; a larger step is a real gap, or sound that starts again."""

MEMORY_S = 0.5
"""Half-life of what two channels had in common: the choice how they are mixed does not change with every frame."""
LEVEL = 0.5**0.5
"""Two channels that have nothing in common are as loud together as one, as FFmpeg mixes them."""
OUT_OF_PHASE = -0.5
"""Correlation of two channels below which they take more from each other than they add."""

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
        return self.start_s + len(self.samples) / RATE_HZ

    def between(self, start_s: float, end_s: float) -> Samples:
        first, last = (max(round((time_s - self.start_s) * RATE_HZ), 0) for time_s in (start_s, end_s))
        return self.samples[first:last]


def sound_windows(path: Path, name: str, playlist: bool = False, track: str | None = None) -> Iterator[Sound]:
    """Yield the sound of a local file in windows of at most `WINDOW_S`, in order; none where it has no sound track.

    A window ends where its last third is quietest, so that few words are cut in two. No more than a window is in
    memory. Raises what `sound_pieces` raises.
    """
    yield from _join_windows(sound_pieces(path, name, playlist, track))


def sound_pieces(path: Path, name: str, playlist: bool = False, track: str | None = None) -> Iterator[Sound]:
    """Yield the sound of a local file in order, in the short pieces in which it is decoded; nothing if it has none.

    A piece begins where the one before it ends, but for gaps of the sound itself. `track` as `choose_sound` has it.

    Raises SourceMissing, SourceForbidden, EmptyFile, NotAVideo: the file cannot be opened; SoundError: there is a sound
    track, and nothing of it decodes, or not the one that is named.
    """
    with open_container(path, name, playlist) as container:
        stream = only_sound(container, track)
        if stream is None:
            return
        has_sound, clock = False, file_clock(path, name, playlist)
        for piece in _follow(_resample(_decode(container, stream, clock))):
            has_sound = True
            yield piece
    if not has_sound:
        raise SoundError(f"{name}: nothing of its sound track decodes; re-encode it, for example to AAC")


def _decode(container: InputContainer, stream: AudioStream, clock: Clock) -> Iterator[AudioFrame]:
    """Yield the frames of sound; packets that cannot be read or decoded are left out."""
    from av import FFmpegError

    for packet in packets_to_end(lambda: clock.demux(container, stream)):
        with suppress(FFmpegError):
            yield from stream.decode(packet)


def _resample(frames: Iterable[AudioFrame]) -> Iterator[Sound]:
    """Resample frames to mono at `RATE_HZ`; from a change of format on, with a new resampler."""
    import av

    resampler, current, mixer = None, None, Mixer()
    for frame in frames:
        form = frame.format.name, frame.layout.name, frame.sample_rate
        if form != current:
            yield from _sounds([] if resampler is None else resampler.resample(None), mixer)
            layout = "stereo" if frame.layout.nb_channels == 2 else "mono"
            resampler, current = av.AudioResampler(format="fltp", layout=layout, rate=RATE_HZ), form
        assert resampler is not None
        yield from _sounds(resampler.resample(frame), mixer)
    yield from _sounds([] if resampler is None else resampler.resample(None), mixer)


def _sounds(frames: Iterable[AudioFrame], mixer: Mixer) -> Iterator[Sound]:
    for frame in frames:
        start_s = float("nan") if frame.time is None else float(frame.time)
        yield Sound(start_s, mixer.mono(frame.to_ndarray().astype(np.float32, copy=False)))


class Mixer:
    """Mixes two channels to one. Of a pair out of phase, which a plain mix makes silent, one is turned over first."""

    def __init__(self) -> None:
        self._together = self._power = 0.0  # of the last second or so

    def mono(self, channels: Samples) -> Samples:
        """Mix samples `[channels, n]`, one or two, to `[n]`."""
        if len(channels) == 1:
            only: Samples = channels[0]
            return only
        left, right = channels
        kept = 0.5 ** (len(left) / (MEMORY_S * RATE_HZ))
        self._together = kept * self._together + float(left @ right)
        self._power = kept * self._power + float(left @ left + right @ right) / 2
        both = left - right if self._together < OUT_OF_PHASE * self._power else left + right
        mixed: Samples = both * np.float32(LEVEL)
        return mixed


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
