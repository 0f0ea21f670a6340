"""Tell voices apart: a vector for each line of speech, and the lines of a video grouped by voice.

The network is a speaker encoder trained with the generalized end-to-end loss (Wan et al. 2018, arXiv 1710.10467): three
LSTM layers over 40 mel bands of 1.6 s of sound. Its weights are those that the package resemblyzer carries
(Apache-2.0), which itself is not imported: it would bring a compiler's work and 200 MB of packages that are not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import ModelMissing
from kinodex.pipeline.models.audio import RATE_HZ, Samples
from kinodex.pipeline.models.hub import chosen_device, import_transformers, inference

VOICE_MODEL = "resemblyzer"
"""Vectors of this encoder can be compared with each other only."""
DIM = 256
BANDS = 40
FRAME, HOP = 400, 160
"""Samples of a frame of the spectrogram, 25 ms, and between two of them, 10 ms."""
PARTIAL = 160
"""Frames that the encoder was trained on."""
LEAST_LEVEL = 10 ** (-30 / 20)
"""Quieter sound is made as loud as this: -30 dB of full scale."""
LEAST_LINE_S = 0.8
"""A shorter line says too little of a voice; it gets none."""
SAME_IN_VIDEO = 0.7
"""Mean cosine from which on the lines of two groups are of one voice. Measured: lines of one voice
have 0.75 to 0.85 on average, those of two 0.4 to 0.65."""
SAME_VOICE = 0.78
"""Cosine from which on the mean voices of two videos are one person: parts of one recording have 0.82 to 0.99, two
persons at most 0.72."""
LEAST_VOICE_S = 2.0
"""Voices with less speech than this are none of their own where there are others."""
MOST_TOGETHER = 2000
"""Lines that are grouped at once: the distances of this many take 16 MB."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice of a video: its mean vector `[DIM]` of unit length, and the seconds of speech in it."""

    vector: Vectors
    seconds: float


class VoiceEncoder:
    """The loaded encoder; the same sound gives the same vector."""

    def __init__(self, weights: Any, device: Any) -> None:
        import torch

        self._device = device
        self._lstm = torch.nn.LSTM(BANDS, DIM, num_layers=3, batch_first=True)
        self._linear = torch.nn.Linear(DIM, DIM)
        for name, part in (("lstm", self._lstm), ("linear", self._linear)):
            own = {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}
            part.load_state_dict(own)
            part.eval().to(device)
        audio = import_transformers().audio_utils
        self._bands = audio.mel_filter_bank(
            FRAME // 2 + 1, BANDS, 0.0, RATE_HZ / 2, RATE_HZ, norm="slaney", mel_scale="slaney"
        )
        self._shape = audio.window_function(FRAME, "hann")
        self._spectrogram = audio.spectrogram

    def embed(self, samples: Samples) -> Vectors | None:
        """Return the vector `[DIM]`, of unit length, of the voice in some samples; None where there are too few."""
        import torch

        if len(samples) < LEAST_LINE_S * RATE_HZ:
            return None
        level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        even = samples * (LEAST_LEVEL / level) if 0 < level < LEAST_LEVEL else samples
        frames = self._frames(even)
        starts = [*range(0, max(len(frames) - PARTIAL, 0), PARTIAL // 2), max(len(frames) - PARTIAL, 0)]
        partials = np.stack([frames[start : start + PARTIAL] for start in starts])
        with inference():
            _, (states, _) = self._lstm(torch.from_numpy(partials).to(self._device))
            vectors = torch.relu(self._linear(states[-1])).cpu().numpy()
        return unit(np.sum(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), axis=0))

    def _frames(self, samples: Samples) -> Vectors:
        """Compute the spectrogram `[frames, BANDS]` of sound; of too short a sound with silence after it."""
        padded = np.pad(samples, (0, max(PARTIAL * HOP - len(samples), 0)))
        bands = self._spectrogram(
            padded, self._shape, FRAME, HOP, power=2.0, pad_mode="constant", mel_filters=self._bands
        )
        frames: Vectors = np.ascontiguousarray(bands.T, np.float32)
        return frames


def load_voice_encoder(device: str = "auto") -> VoiceEncoder:
    """Load the encoder from the installed package; raises ModelMissing without it, or NoSuchDevice."""
    import torch

    package = find_spec("resemblyzer")
    places = list(package.submodule_search_locations or ()) if package else []
    file = Path(places[0], "pretrained.pt") if places else None
    if file is None or not file.is_file():
        raise ModelMissing(
            "--speakers needs the voice encoder that the package resemblyzer carries; "
            "`pip install --no-deps resemblyzer` brings it (its other packages are not used)"
        )
    weights = torch.load(file, map_location="cpu", weights_only=True)["model_state"]
    return VoiceEncoder(weights, chosen_device(device))


def group_voices(vectors: Sequence[Vectors | None], seconds: Sequence[float]) -> tuple[list[Voice], list[int | None]]:
    """Group lines by voice: the voices in order of their first line, and each line's number.

    Average linkage of cosines (Sokal and Michener 1958), while they are `SAME_IN_VIDEO` or more.
    """
    known = [at for at, vector in enumerate(vectors) if vector is not None]
    lines = [Voice(vector, seconds[at]) for at, vector in enumerate(vectors) if vector is not None]
    groups = _merged(lines)
    voices = [_mean([lines[at] for at in group]) for group in groups]
    own = [at for at, voice in enumerate(voices) if voice.seconds >= LEAST_VOICE_S] or list(range(len(voices)))
    numbers: list[int | None] = [None] * len(vectors)
    for at, group in enumerate(groups):
        number = own.index(at) if at in own else _nearest(voices[at], [voices[each] for each in own])
        for line in group:
            numbers[known[line]] = number
    return [voices[at] for at in own], numbers


def unit(vector: NDArray[Any]) -> Vectors:
    scaled: Vectors = (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)
    return scaled


def _merged(lines: Sequence[Voice]) -> list[list[int]]:
    """Group the numbers of lines by voice, in order of their first line."""
    if len(lines) <= MOST_TOGETHER:
        return _linked([line.vector for line in lines])
    groups = []
    for first in range(0, len(lines), MOST_TOGETHER):
        some = lines[first : first + MOST_TOGETHER]
        groups += [[first + at for at in group] for group in _linked([line.vector for line in some])]
    if len(groups) == len(lines):
        return groups  # no two lines are alike
    again = _merged([_mean([lines[at] for at in group]) for group in groups])
    return [sorted(at for number in numbers for at in groups[number]) for numbers in again]


def _linked(vectors: Sequence[Vectors]) -> list[list[int]]:
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(vectors) < 2:
        return [[at] for at in range(len(vectors))]
    tree = linkage(np.stack(vectors).astype(np.float64), "average", "cosine")
    groups: dict[int, list[int]] = {}
    for at, group in enumerate(fcluster(tree, 1 - SAME_IN_VIDEO, "distance").tolist()):
        groups.setdefault(group, []).append(at)
    return list(groups.values())


def _mean(lines: Sequence[Voice]) -> Voice:
    return Voice(unit(np.sum([line.vector * line.seconds for line in lines], axis=0)), sum(x.seconds for x in lines))


def _nearest(voice: Voice, voices: Sequence[Voice]) -> int | None:
    cosines = [float(voice.vector @ other.vector) for other in voices]
    best = int(np.argmax(cosines))
    return best if cosines[best] >= SAME_IN_VIDEO else None
