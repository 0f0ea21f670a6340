"""The sound of a video: mono samples with their times, in windows for a speech model, of all of it or of speech."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.clock import Clock, file_clock, packets_to_end
from kinodex.pipeline.decoding.stream import open_container
from kinodex.pipeline.errors import ModelMissing, SoundError
from kinodex.pipeline.media.source import only_sound

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
    """Yield frames of sound; packets that cannot be read or decoded are left out."""
    from av import FFmpegError

    for packet in packets_to_end(clock, container, stream):
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
            return channels[0]
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


# Cut sound into windows for a speech model where somebody speaks, found by Silero VAD.
#
# Whisper invents words for music, noise and silence (Radford et al. 2022, section 4.5), so it is given none. Ranges of
# speech are joined to windows and cut in pauses, as Bain et al. 2023 (WhisperX, arXiv 2303.00747, section 3.1) do.
#
# The network comes with the package silero-vad; ONNX Runtime runs it, and the package itself is not imported.

STEP = 512
"""Samples of which the network tells one probability: 32 ms."""
CONTEXT = 64
"""Samples before a step that it is given too."""
STEPS_A_CALL = 512
STATE = (1, 1, 128)
VOICE_FROM = 0.5
"""A range of speech begins at this probability, and ends where it stays below `VOICE_UNTIL`."""
VOICE_UNTIL = 0.35
LEAST_PAUSE_S = 0.3
LEAST_VOICE_S = 0.25
PAD_S = 0.2
"""Sound around a range that counts for it: the network finds the middle of words before their edges."""
EDGE_S = 1.0
"""Sound that a window has before its first and after its last range, if nobody else speaks there."""
LONGEST_GAP_S = 5.0
"""A longer pause ends a window. Shorter ones do not: a window costs the same however little is said in it."""

Steps = tuple[int, int]
"""A half-open range of steps."""


class Window(NamedTuple):
    """A window `[start, end)` and the ranges of speech in it, in steps."""

    start: int
    end: int
    speech: tuple[Steps, ...]


class VoiceDetector:
    """A loaded Silero VAD (version 6): the probability of speech in each 32 ms of sound."""

    def __init__(self, model: bytes) -> None:
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the network is small
        self._session: Any = InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def listen(self) -> Listener:
        return Listener(self._session)


class Listener:
    """A detector in the middle of a sound: it remembers what it heard."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._h, self._c = np.zeros(STATE, np.float32), np.zeros(STATE, np.float32)
        self._context = np.zeros(CONTEXT, np.float32)

    def probabilities(self, samples: Samples) -> NDArray[np.float32]:
        padded = np.pad(samples, (0, -len(samples) % STEP)).astype(np.float32, copy=False).reshape(-1, STEP)
        found = [np.empty(0, np.float32)]
        for first in range(0, len(padded), STEPS_A_CALL):
            steps = padded[first : first + STEPS_A_CALL]
            before = np.concatenate([self._context[None], steps[:-1, -CONTEXT:]])
            inputs = {"input": np.concatenate([before, steps], axis=1), "h": self._h, "c": self._c}
            values, self._h, self._c = self._session.run(["speech_probs", "hn", "cn"], inputs)
            self._context = steps[-1, -CONTEXT:]
            found.append(values)
        return np.concatenate(found)


def load_voice_detector() -> VoiceDetector:
    """Load Silero VAD from its installed package; raises ModelMissing without it."""
    package = find_spec("silero_vad")
    places = list(package.submodule_search_locations or ()) if package else []
    file = Path(places[0], "data", "silero_vad_16k_sequence.onnx") if places else None
    if file is None or not file.is_file():
        raise ModelMissing(
            "speech is found by silero-vad 6.2.3 or later, which is not installed; `pip install 'kinodex[hf]'` brings "
            "it, and --no-vad does without it"
        )
    return VoiceDetector(file.read_bytes())


def voice_windows(pieces: Iterable[Sound], detector: VoiceDetector) -> Iterator[Sound]:
    """Yield the windows of at most `WINDOW_S` in which somebody speaks, in order, with the ranges of `speech`."""
    listener, held, probabilities = detector.listen(), Sound(0.0, np.empty(0, np.float32)), np.empty(0, np.float32)
    for sound, goes_on in stretches(pieces, STEP * STEPS_A_CALL):
        held = Sound(held.start_s if len(held.samples) else sound.start_s, np.append(held.samples, sound.samples))
        steps = len(held.samples) // STEP if goes_on else -(-len(held.samples) // STEP)
        heard = listener.probabilities(held.samples[len(probabilities) * STEP : steps * STEP])
        probabilities = np.append(probabilities, heard)
        used = 0
        for window in windows_of(probabilities, goes_on):
            yield _sound_of(held, window)
            used = window.end
        if goes_on:
            used += _start_of_rest(probabilities[used:])
            held = Sound(held.start_s + used * STEP / RATE_HZ, held.samples[used * STEP :])
            probabilities = probabilities[used:]
        else:
            listener, held, probabilities = detector.listen(), Sound(0.0, held.samples[:0]), probabilities[:0]


def windows_of(probabilities: NDArray[np.float32], goes_on: bool = False) -> Iterator[Window]:
    """Yield windows of speech and its pauses, of at most `WINDOW_S`; if it `goes_on`, those that have ended."""
    known, edge, end = len(probabilities), _steps(EDGE_S), 0
    groups = list(_groups(speech_steps(probabilities), probabilities))
    for number, group in enumerate(groups):
        next_start = groups[number + 1][0][0] if number + 1 < len(groups) else known
        if goes_on and next_start == known and known - group[-1][1] <= _steps(LONGEST_GAP_S):
            return
        start, end = max(group[0][0] - edge, end), min(group[-1][1] + edge, next_start)
        yield Window(start, end, tuple(group))


def _groups(ranges: Sequence[Steps], probabilities: NDArray[np.float32]) -> Iterator[list[Steps]]:
    longest, gap = _steps(WINDOW_S - 2 * EDGE_S), _steps(LONGEST_GAP_S)
    group: list[Steps] = []
    for start, end in _shortened(ranges, probabilities, longest):
        if group and (end - group[0][0] > longest or start - group[-1][1] > gap):
            yield group
            group = []
        group.append((start, end))
    if group:
        yield group


def speech_steps(probabilities: NDArray[np.float32]) -> list[Steps]:
    """Find the ranges of speech with some sound around them; they do not overlap."""
    ranges: list[Steps] = []
    begin: int | None = None
    last = 0
    for at, probability in enumerate(probabilities.tolist()):
        if probability >= VOICE_FROM and begin is None:
            begin = at
        if probability >= VOICE_UNTIL:
            last = at
        elif begin is not None and at - last >= _steps(LEAST_PAUSE_S):
            ranges.append((begin, last + 1))
            begin = None
    if begin is not None:
        ranges.append((begin, last + 1))
    return _padded([each for each in ranges if each[1] - each[0] >= _steps(LEAST_VOICE_S)], len(probabilities))


def _padded(ranges: Sequence[Steps], known: int) -> list[Steps]:
    """Widen ranges, no further than half the way to the next one."""
    pad = _steps(PAD_S)
    edges = [0, *((before[1] + after[0]) // 2 for before, after in pairwise(ranges)), known]
    return [
        (max(start - pad, least), min(end + pad, most))
        for (start, end), (least, most) in zip(ranges, pairwise(edges), strict=False)
    ]


def _shortened(ranges: Iterable[Steps], probabilities: NDArray[np.float32], longest: int) -> Iterator[Steps]:
    """Cut ranges that are longer than a window where speech is least certain in the last third of one."""
    for start, end in ranges:
        while end - start > longest:
            first = start + _steps(CUT_FROM_S)
            cut = first + int(np.argmin(probabilities[first : start + longest]))
            yield start, cut
            start = cut
        yield start, end


def _sound_of(held: Sound, window: Window) -> Sound:
    def time_s(step: int) -> float:
        return held.start_s + step * STEP / RATE_HZ

    speech = tuple((time_s(start), time_s(end)) for start, end in window.speech)
    return Sound(time_s(window.start), held.samples[window.start * STEP : window.end * STEP], speech)


def _start_of_rest(probabilities: NDArray[np.float32]) -> int:
    """Find from which step on sound has to be kept: a little before the first speech, or before one that may begin."""
    ranges = speech_steps(probabilities)
    first = ranges[0][0] if ranges else len(probabilities) - _steps(LEAST_VOICE_S)
    return max(first - _steps(EDGE_S), 0)


def _steps(seconds: float) -> int:
    return round(seconds * RATE_HZ / STEP)
