"""Cut sound into windows for a speech model where somebody speaks, found by Silero VAD.

Whisper invents words for music, noise and silence (Radford et al. 2022, section 4.5), so it is given none. Ranges of
speech are joined to windows and cut in pauses, as Bain et al. 2023 (WhisperX, arXiv 2303.00747, section 3.1) do.

The network comes with the package silero-vad; ONNX Runtime runs it, and the package itself is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import ModelMissing
from kinodex.pipeline.models.audio import CUT_FROM_S, RATE_HZ, WINDOW_S, Samples, Sound, stretches

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
