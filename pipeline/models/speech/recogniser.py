"""Transcribe speech with a local Whisper model (Radford et al. 2022, arXiv 2212.04356) to lines with their language.

Its own marks of time are coarse; so lines are cut again from the times of words, where the model has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.audio import RATE_HZ, Sound
from kinodex.pipeline.models.hub import Loaded, inference, load_model, quiet
from kinodex.pipeline.models.speech.languages import LOOK_AHEAD, follow_languages
from kinodex.pipeline.models.speech.lines import cut_lines, tidy_words
from kinodex.pipeline.models.speech.loops import is_loop
from kinodex.pipeline.models.speech.word_times import STEP_S, UNSPACED, Word, attention_weights, token_times, words_of

NEVER_TWICE = 3
"""Tokens in a row that a window which was heard as a loop has but once when it is heard again."""
SILENCE_RMS = 1e-3
"""-60 dB of full scale. Whisper invents words for silence (its paper, section 4.5), so it never gets silence."""


@dataclass(frozen=True, slots=True)
class SpeechLine:
    """A line in `[start_s, end_s)` of the video; no `words` without times, no `speaker` where nobody looked."""

    start_s: float
    end_s: float
    text: str
    language: str | None
    speaker: str | None = None
    words: tuple[Word, ...] = ()


class _Part(NamedTuple):
    """Part of a window's text; times are from the window's start."""

    start_s: float
    end_s: float
    tokens: list[int]


class _Said(NamedTuple):
    """The words of a window in the video's time, and the numbers of those that begin a part."""

    words: list[Word]
    breaks: set[int]


class Recogniser:
    """A loaded Whisper model; greedy, so the same sound gives the same words."""

    def __init__(self, loaded: Loaded, language: str | None = None, batch: int = 4) -> None:
        self._loaded = loaded
        self._batch = batch
        self._decode = loaded.processor.tokenizer.decode
        settings = loaded.model.generation_config
        settings.do_sample, settings.num_beams = False, 1
        languages = getattr(settings, "lang_to_id", None) or {}  # a model that knows only English has none
        self._codes: dict[str, int] = {token.strip("<|>"): number for token, number in languages.items()}
        self._language = self._check_language(language)
        self._knows_times = bool(getattr(settings, "alignment_heads", None))

    def transcribe_windows(self, windows: Iterable[Sound]) -> Iterator[tuple[Sound, list[SpeechLine]]]:
        """Yield each window of one video with sound in it, in order, and its lines, a batch of windows at a time.

        Without a language, it is found window by window, and changes only on good evidence (`follow_languages`):
        Whisper alone would decide for each window, and drift.
        """
        sounding = (
            window for window in windows if np.sqrt(np.mean(np.square(window.samples, dtype=np.float64))) >= SILENCE_RMS
        )
        needs_states = self._knows_times or (self._language is None and bool(self._codes))
        standing: NDArray[np.float64] | None = None
        while ahead := list(islice(sounding, LOOK_AHEAD)):
            batches = [ahead[at : at + self._batch] for at in range(0, len(ahead), self._batch)]
            features = [self._features(batch) for batch in batches]
            states = [self._states(each) if needs_states else None for each in features]
            languages, standing = self._languages(ahead, states, standing)
            names = iter(languages)
            for batch, inputs, encoded in zip(batches, features, states, strict=True):
                yield from self._lines(batch, inputs, encoded, list(islice(names, len(batch))))

    def _features(self, windows: Sequence[Sound]) -> Any:
        extractor = self._loaded.processor.feature_extractor
        samples = [window.samples for window in windows]
        batch = extractor(samples, sampling_rate=RATE_HZ, return_tensors="pt", return_attention_mask=True)
        return self._loaded.to_input(batch)

    def _states(self, features: Any) -> Any:
        with inference():
            return self._loaded.model.model.encoder(features["input_features"]).last_hidden_state

    def _languages(
        self, windows: Sequence[Sound], states: Sequence[Any], standing: NDArray[np.float64] | None
    ) -> tuple[list[str], NDArray[np.float64] | None]:
        """Find the language of each window; `standing` is what `follow_languages` returned for those before."""
        if self._language is not None or not self._codes:
            return [self._language or "en"] * len(windows), standing
        evidence = np.concatenate([self._language_evidence(each) for each in states])
        names = list(self._codes)
        chosen, standing = follow_languages(evidence, np.array([_speech_s(window) for window in windows]), standing)
        return [names[number] for number in chosen], standing

    def _language_evidence(self, states: Any) -> NDArray[np.float64]:
        """Return log-probabilities `[windows, languages]` of the token that Whisper writes before all others."""
        import torch

        model = self._loaded.model
        start = model.generation_config.decoder_start_token_id
        ids = torch.full((len(states), 1), start, device=states.device)
        with inference():
            logits = model(encoder_outputs=(states,), decoder_input_ids=ids, use_cache=False).logits[:, -1]
        wide: NDArray[np.float64] = logits[:, list(self._codes.values())].double().log_softmax(-1).cpu().numpy()
        return wide

    def _lines(
        self, windows: Sequence[Sound], features: Any, states: Any, languages: Sequence[str]
    ) -> Iterator[tuple[Sound, list[SpeechLine]]]:
        parts = self._parts(features, languages)
        words = self._words(windows, states, parts, languages)
        for window, some, said, language in zip(windows, parts, words, languages, strict=True):
            lines = _fine_lines(said, language) if said else self._coarse_lines(window, some, language)
            yield window, list(lines)

    def _parts(self, features: Any, languages: Sequence[str]) -> list[list[_Part]]:
        """Generate, for each window, parts of text with their times within it by Whisper's timestamp tokens.

        A window in which the model loops is heard once more, with a ban on any three tokens twice; loops that are left
        are dropped, since nothing is known of what is said there.
        """
        inputs, mask = features["input_features"], features["attention_mask"]
        found = self._generate(inputs, mask, languages)
        looping = [at for at, parts in enumerate(found) if any(map(self._loops, parts))]
        if looping:
            again = [languages[at] for at in looping]
            heard = self._generate(inputs[looping], mask[looping], again, no_repeat_ngram_size=NEVER_TWICE)
            for at, parts in zip(looping, heard, strict=True):
                found[at] = [part for part in parts if not self._loops(part)]
        return found

    def _generate(self, inputs: Any, mask: Any, languages: Sequence[str], **limits: int) -> list[list[_Part]]:
        options = {"language": list(languages), "task": "transcribe"} if self._codes else {}
        with inference(), quiet():
            output = self._loaded.model.generate(
                inputs, attention_mask=mask, return_timestamps=True, return_segments=True, **options, **limits
            )
        return [
            [_Part(float(part["start"]), float(part["end"]), part["tokens"].tolist()) for part in parts]
            for parts in output["segments"]
        ]

    def _loops(self, part: _Part) -> bool:
        return is_loop(self._decode(self._text_tokens(part)))

    def _words(
        self, windows: Sequence[Sound], states: Any, parts: Sequence[Sequence[_Part]], languages: Sequence[str]
    ) -> list[_Said | None]:
        """Find the words of each window; None where their times are not known."""
        if not self._knows_times:
            return [None] * len(windows)
        with inference(), attention_weights(self._loaded.model):
            return [
                self._words_of(window, states[at : at + 1], parts[at], languages[at])
                for at, window in enumerate(windows)
            ]

    def _words_of(self, window: Sound, states: Any, parts: Sequence[_Part], language: str) -> _Said | None:
        model, prompt = self._loaded.model, self._prompt(language)
        within = (part for part in parts if window.start_s + part.start_s < window.end_s)  # not after its end: invented
        texts = [text for part in within if (text := self._text_tokens(part))]
        tokens = list(chain.from_iterable(texts))
        if not tokens or len(prompt) + len(tokens) > model.config.max_target_positions:
            return None  # more than fits at once is what a model writes that repeats itself
        steps = min(round(len(window.samples) / RATE_HZ / STEP_S) or 1, states.shape[1])
        times_s = (window.start_s + token_times(model, states, prompt, tokens, steps)).tolist()
        words: list[Word] = []
        breaks, at = set(), 0
        for text in texts:
            breaks.add(len(words))
            words += words_of(text, times_s[at : at + len(text) + 1], self._decode, language)
            at += len(text)
        return _Said(tidy_words(words, window.speech, window.start_s, window.end_s), breaks)

    def _prompt(self, language: str) -> list[int]:
        settings = self._loaded.model.generation_config
        task = [self._codes[language], settings.task_to_id["transcribe"]] if self._codes else []
        return [settings.decoder_start_token_id, *task, settings.no_timestamps_token_id]

    def _text_tokens(self, part: _Part) -> list[int]:
        settings, special = self._loaded.model.generation_config, set(self._loaded.processor.tokenizer.all_special_ids)
        return [token for token in part.tokens if token < settings.no_timestamps_token_id and token not in special]

    def _coarse_lines(self, window: Sound, parts: Sequence[_Part], language: str) -> Iterator[SpeechLine]:
        """Convert parts of a window to lines in the video's time; one that reaches beyond the window ends with it."""
        for part in parts:
            start_s = min(window.start_s + part.start_s, window.end_s)
            end_s = min(window.start_s + part.end_s, window.end_s)
            text = " ".join(self._decode(part.tokens, skip_special_tokens=True).split())
            if text and end_s > start_s:
                yield SpeechLine(start_s, end_s, text, language)

    def _check_language(self, language: str | None) -> str | None:
        known = sorted(self._codes) or ["en"]
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


def _fine_lines(said: _Said, language: str) -> Iterator[SpeechLine]:
    for line in cut_lines(said.words, said.breaks):
        text = ("" if language in UNSPACED else " ").join(word.text for word in line)
        yield SpeechLine(line[0].start_s, line[-1].end_s, text, language, None, tuple(line))


def _speech_s(window: Sound) -> float:
    ranges = ((window.start_s, window.end_s),) if window.speech is None else window.speech
    return sum(end_s - start_s for start_s, end_s in ranges)
