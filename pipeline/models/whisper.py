"""Transcribe speech with a local Whisper model (Radford et al. 2022, arXiv 2212.04356) to lines with their language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pipeline.errors import WrongModel
from pipeline.models.audio_windows import RATE_HZ, Sound
from pipeline.models.hub import Loaded, inference, load_model, quiet

SILENCE_RMS = 1e-3
"""-60 dB of full scale. Whisper invents words for silence (its paper, section 4.5), so it never gets silence."""


@dataclass(frozen=True, slots=True)
class SpeechLine:
    """A spoken line in `[start_s, end_s)`, in the video's own presentation time; its speaker is unknown."""

    start_s: float
    end_s: float
    text: str
    language: str | None
    speaker: None = None


class _Part(NamedTuple):
    """Part of a window's text; times are from the window's start."""

    start_s: float
    end_s: float
    text: str


class Recogniser:
    """A loaded Whisper model; greedy, so the same sound gives the same words."""

    def __init__(self, loaded: Loaded, language: str | None = None, batch: int = 4) -> None:
        self._loaded = loaded
        self._batch = batch
        settings = loaded.model.generation_config
        settings.do_sample, settings.num_beams = False, 1
        languages = getattr(settings, "lang_to_id", None) or {}  # a model that knows only English has none
        self._codes: dict[int, str] = {number: token.strip("<|>") for token, number in languages.items()}
        self._language = self._check_language(language)

    def transcribe(self, windows: Iterable[Sound]) -> Iterator[SpeechLine]:
        """Yield the lines of one video, in order, from the windows of its sound, a batch of windows at a time.

        Without a language, the whole video is taken to be in the commonest language of its first windows: Whisper
        alone would decide for each window, and drift on music and noise.
        """
        language = self._language
        sounding = (window for window in windows if _rms(window) >= SILENCE_RMS)
        while together := list(islice(sounding, self._batch)):
            features = self._features(together)
            language = language or self._detect_language(features)
            for window, parts in zip(together, self._parts(features, language), strict=True):
                yield from _lines(window, parts, language)

    def _features(self, windows: Sequence[Sound]) -> Any:
        extractor = self._loaded.processor.feature_extractor
        samples = [window.samples for window in windows]
        batch = extractor(samples, sampling_rate=RATE_HZ, return_tensors="pt", return_attention_mask=True)
        return self._loaded.to_input(batch)

    def _detect_language(self, features: Any) -> str:
        """Detect the commonest language of some windows."""
        if not self._codes:
            return "en"
        with inference():
            found = self._loaded.model.detect_language(features["input_features"])
        return Counter(self._codes[int(number)] for number in found).most_common(1)[0][0]

    def _parts(self, features: Any, language: str) -> list[list[_Part]]:
        """Generate, for each window, parts of text with their times within it by Whisper's timestamp tokens."""
        options = {"language": language, "task": "transcribe"} if self._codes else {}
        with inference(), quiet():
            output = self._loaded.model.generate(
                features["input_features"],
                attention_mask=features["attention_mask"],
                return_timestamps=True,
                return_segments=True,
                **options,
            )
        decode = self._loaded.processor.tokenizer.decode
        return [
            [
                _Part(
                    float(part["start"]), float(part["end"]), decode(part["tokens"].tolist(), skip_special_tokens=True)
                )
                for part in parts
            ]
            for parts in output["segments"]
        ]

    def _check_language(self, language: str | None) -> str | None:
        known = sorted(self._codes.values()) or ["en"]
        if language is not None and language not in known:
            allowed = ", ".join(known)
            raise WrongModel(f"got language {language!r}, which {self._loaded.name} does not know; it knows {allowed}")
        return language


def load_recogniser(name: str, device: str = "auto", language: str | None = None, batch: int = 4) -> Recogniser:
    """Load the Whisper model `name`, a hub id or a folder; raises ModelMissing, WrongModel or NoSuchDevice."""
    loaded = load_model("SpeechSeq2Seq", name, device)
    if getattr(loaded.model.generation_config, "no_timestamps_token_id", None) is None:
        raise WrongModel(f"{name} returns no times; give a Whisper model with its generation_config.json")
    return Recogniser(loaded, language, batch)


def _lines(window: Sound, parts: Sequence[_Part], language: str) -> Iterator[SpeechLine]:
    """Convert parts of a window to lines in the video's time; a part that reaches beyond the window ends with it."""
    for part in parts:
        start_s = min(window.start_s + part.start_s, window.end_s)
        end_s = min(window.start_s + part.end_s, window.end_s)
        text = " ".join(part.text.split())
        if text and end_s > start_s:
            yield SpeechLine(start_s, end_s, text, language)


def _rms(window: Sound) -> float:
    return float(np.sqrt(np.mean(np.square(window.samples, dtype=np.float64))))
