"""Transcribe speech with a local Whisper model (Radford et al. 2022, arXiv 2212.04356) to lines with their language.

Its own marks of time are coarse; so lines are cut again from the times of words, where the model has them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.audio import RATE_HZ, Sound
from kinodex.pipeline.models.hub import Loaded, inference, load_model, quiet

# Times of words, from where the decoder of a Whisper model attends to the sound as it writes them.
#
# The model reads its text once more, all at once, and some of its heads attend to the sound of each token (those of
# `alignment_heads`, which a checkpoint lists). The cheapest monotonic path through their mean weights gives a token its
# time: dynamic time warping (Sakoe and Chiba 1978, doi 10.1109/TASSP.1978.1163055, with equal weights for all steps),
# as Whisper's own release does it.

STEP_S = 0.02
"""Sound of one state of the encoder."""
SMOOTH_STEPS = 7
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km", "bo"})
"""Languages that are written without spaces between words: each character is one."""
BROKEN = "\ufffd"
"""Decoded from a token that holds part of a character."""


class Word(NamedTuple):
    """A word with its punctuation, said in `[start_s, end_s)`."""

    text: str
    start_s: float
    end_s: float


@contextmanager
def attention_weights(model: Any) -> Iterator[None]:
    """Have the model return its attention in this block, which its fast kernels do not compute."""
    kernel = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(kernel)


def token_times(
    model: Any, states: Any, prompt: Sequence[int], tokens: Sequence[int], steps: int
) -> NDArray[np.float64]:
    """Return when each of `tokens` begins and the last ends, `[len(tokens) + 1]` seconds from the window's start.

    `states` `[1, positions, dim]` are the encoder's, `steps` those with sound; the `prompt` goes before the text. Call
    it within `attention_weights`.
    """
    import torch

    ids = torch.tensor([[*prompt, *tokens]], device=states.device)
    output = model.model.decoder(
        input_ids=ids, encoder_hidden_states=states, output_attentions=True, use_cache=False, return_dict=True
    )
    heads = model.generation_config.alignment_heads
    chosen = [output.cross_attentions[layer][0, head, :, :steps] for layer, head in heads]
    weights = torch.stack(chosen).float().cpu().numpy()[:, len(prompt) - 1 :]  # a token is written one place earlier
    return path_times(_mean_attention(weights)) * STEP_S


def _mean_attention(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Join heads `[heads, tokens, steps]` to `[tokens, steps]`: each step's weights normalised, smoothed over time."""
    spread = weights.std(axis=1, keepdims=True)
    even = (weights - weights.mean(axis=1, keepdims=True)) / np.maximum(spread, 1e-9)
    half = SMOOTH_STEPS // 2
    padded = np.pad(even, ((0, 0), (0, 0), (half, half)), mode="edge" if even.shape[2] <= half else "reflect")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH_STEPS, axis=2), axis=3)
    mean: NDArray[np.float32] = smooth.mean(axis=0)
    return mean


def path_times(likeness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the first step of each row on the best path through `[rows, steps]`, which begins and ends at corners.

    A path goes on by a row, a step, or both. Computed diagonal by diagonal, since each needs only the two before it.
    """
    rows, steps = likeness.shape
    cost = np.full((rows + 1, steps + 1), np.inf)
    cost[0, 0] = 0.0
    came = np.zeros((rows + 1, steps + 1), np.int8)  # 0: by both, 1: by a row, 2: by a step
    for diagonal in range(2, rows + steps + 1):
        row = np.arange(max(1, diagonal - steps), min(rows, diagonal - 1) + 1)
        step = diagonal - row
        ways = np.stack([cost[row - 1, step - 1], cost[row - 1, step], cost[row, step - 1]])
        came[row, step] = ways.argmin(axis=0)
        cost[row, step] = ways.min(axis=0) - likeness[row - 1, step - 1]
    row, step = rows, steps
    first = np.zeros(rows)
    while row > 0:
        first[row - 1] = step - 1
        way = came[row, step]
        row, step = row - int(way != 2), step - int(way != 1)
    return first


def words_of(tokens: Sequence[int], times_s: Sequence[float], decode: Any, language: str) -> list[Word]:
    """Join tokens to words with their punctuation; `times_s` are those of `token_times`, `decode` makes text of tokens.

    A word begins with a space, but in `UNSPACED` languages, where each character is a word.
    """
    words: list[Word] = []
    first = 0
    for at in range(len(tokens)):
        text = decode(list(tokens[first : at + 1]), skip_special_tokens=True)
        if BROKEN in text and at + 1 < len(tokens):
            continue
        start_s, end_s = float(times_s[first]), float(times_s[at + 1])
        first = at + 1
        begins_word = any(map(str.isalnum, text)) and (language in UNSPACED or text.startswith(" "))
        if words and not begins_word:
            is_mark = not regex.search(r"\w", text)
            before = words.pop()  # a mark is not said: its time would be that of the pause after the word
            words.append(Word(before.text + text, before.start_s, before.end_s if is_mark else end_s))
        else:
            words.append(Word(text, start_s, end_s))
    return [Word(word.text.strip(), word.start_s, word.end_s) for word in words if word.text.strip()]


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


# Cut words into lines as subtitles have them: at the ends of sentences and in pauses, none longer than 7 seconds.

LONGEST_LINE_S = 7.0
"""Longest time of one subtitle in common guides for subtitling."""
PAUSE_S = 0.7
LEAST_CUT_S = 1.0
"""No line is cut off shorter than this but at a pause or the end of a sentence."""
LONGEST_WORD_S = 1.0
SECONDS_A_LETTER = 0.15
"""A word is said in `LONGEST_WORD_S`, or, if it is long, in so much for each letter: the rest is a pause."""
SENTENCE_END = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\u0964\u0965\u061f\u06d4\u0589\u104b\u17d4\u1362]+[\"')\]\u201d\u2019\u00bb\u300d]*$"
)
ABBREVIATION = re.compile(r"^[\"'(\[]*((mr|mrs|ms|dr|st|prof|vs|etc|[a-z])\.)+$", re.IGNORECASE)
CLAUSE_END = re.compile(r"[,;:\u3001\uff0c\uff1b\uff1a\u060c\u061b\u104a\u1363\u2013\u2014-]$")
Ranges = Sequence[tuple[float, float]]


def cut_lines(words: Iterable[Word], breaks: Collection[int] = ()) -> Iterator[list[Word]]:
    """Yield the words of each line, in order; `breaks` are numbers of words where the model itself began a new part."""
    line: list[Word] = []
    good: set[int] = set()
    for number, word in enumerate(words):
        if line and (word.start_s - line[-1].end_s >= PAUSE_S or _ends_sentence(line[-1].text)):
            yield from _shorter(line, good)
            line, good = [], set()
        if number in breaks:
            good.add(len(line))
        line.append(word)
    if line:
        yield from _shorter(line, good)


def tidy_words(words: Sequence[Word], speech: Ranges | None, start_s: float, end_s: float) -> list[Word]:
    """Move words out of pauses: an attention that waits for the next word, or for the first, lies there.

    `speech` are the ranges where somebody speaks, where they are known; a word is never moved out of
    `[start_s, end_s)`.
    """
    tidy: list[Word] = []
    free_s = start_s  # words that the model gives no time get a little, and the next begins after it
    for at, word in enumerate(words):
        first, last = max(word.start_s, start_s), min(word.end_s, end_s)
        first, last = _most_heard(first, last, speech) if speech else (first, last)
        longest = max(LONGEST_WORD_S, SECONDS_A_LETTER * len(word.text))
        if last - first > longest:
            opens = at == 0 or _ends_sentence(words[at - 1].text)
            first, last = (last - longest, last) if opens else (first, first + longest)
        first = min(max(first, free_s), max(end_s - STEP_S, start_s))
        free_s = max(last, min(first + STEP_S, end_s))
        tidy.append(Word(word.text, first, free_s))
    return tidy


def _most_heard(start_s: float, end_s: float, speech: Ranges) -> tuple[float, float]:
    """Cut a word down to the range of speech that it shares most time with; one in a pause stays as it is."""
    shared = [(min(end_s, end) - max(start_s, start), max(start_s, start), min(end_s, end)) for start, end in speech]
    most = max(shared, key=lambda each: each[0])
    return (most[1], most[2]) if most[0] > 0 else (start_s, end_s)


def _shorter(line: list[Word], good: Collection[int]) -> Iterator[list[Word]]:
    """Cut a line that is too long in two where it is best cut, again and again."""
    while len(line) > 1 and line[-1].end_s - line[0].start_s > LONGEST_LINE_S:
        cut = _best_cut(line, good)
        yield line[:cut]
        line, good = line[cut:], {number - cut for number in good}
    yield line


def _best_cut(line: Sequence[Word], good: Collection[int]) -> int:
    """Find before which word to cut: at a pause, comma or break, late in the time that a line may take."""
    first_s, last_s = line[0].start_s, line[-1].end_s
    best, best_score = 1, float("-inf")
    for at, (before, after) in enumerate(pairwise(line), start=1):
        if before.end_s - first_s > LONGEST_LINE_S:
            break
        clause = 0.5 if at in good or CLAUSE_END.search(before.text) else 0.0
        stub = 1.0 if min(before.end_s - first_s, last_s - before.end_s) < LEAST_CUT_S else 0.0
        score = after.start_s - before.end_s + clause - stub + 0.1 * (before.end_s - first_s) / LONGEST_LINE_S
        best, best_score = (at, score) if score > best_score else (best, best_score)
    return best


def _ends_sentence(text: str) -> bool:
    return bool(SENTENCE_END.search(text)) and not ABBREVIATION.match(text)


# Loops of a Whisper model: the same words over and over, which it writes where it does not understand (echo, music).
#
# They are known by how well they compress, as Radford et al. 2022 (section 4.5) tell them from speech.

MOST_COMPRESSED = 2.4
"""Times that a text is longer than when it is compressed, from which on it is a loop (of the paper). Songs and lines
with words twice over have 1.3 to 2.2."""


def is_loop(text: str) -> bool:
    """True for a text that repeats itself more than people do.

    It has a byte for each character: UTF-8 has three for one of Hindi or Georgian, of which two are always the same.
    """
    foreign = dict.fromkeys(letter for letter in text if not letter.isascii())
    others = {letter: 128 + at % 128 for at, letter in enumerate(foreign)}
    data = bytes(others.get(letter, ord(letter) & 127) for letter in text)
    return len(data) > MOST_COMPRESSED * len(zlib.compress(data))


# Languages of a video's windows of sound: one for all of it, unless there is good evidence that it changes.
#
# A window by itself may be taken for another language, for a name or a song; so a change has its price, and the
# cheapest sequence of languages is found (Viterbi 1967, doi 10.1109/TIT.1967.1054010).

LOOK_AHEAD = 16
"""Windows whose languages are found together: eight minutes of speech."""
FLOOR = float(np.log(1e-3))
"""No window speaks more strongly against a language."""
CHANGE = 3.0
"""Price of a change, in nats: one whole window in another language must be sure of it, two need not be."""
FULL_S = 10.0
"""A window with less speech counts for less."""


def follow_languages(
    log_probabilities: NDArray[np.float64], speech_s: NDArray[np.float64], before: NDArray[np.float64] | None
) -> tuple[list[int], NDArray[np.float64]]:
    """Choose a language for each window from `[windows, languages]` and the seconds of speech in each.

    Returns their numbers, and the standing of each language after the last window, `before` of those that follow.
    """
    evidence = np.maximum(log_probabilities, FLOOR) * np.minimum(speech_s / FULL_S, 1.0)[:, None]
    windows, languages = evidence.shape
    standing = np.zeros(languages) if before is None else before
    came = np.zeros((windows, languages), np.int64)
    for at in range(windows):
        leader = int(np.argmax(standing))
        changed = standing < standing[leader] - CHANGE
        came[at] = np.where(changed, leader, np.arange(languages))
        standing = np.maximum(standing, standing[leader] - CHANGE) + evidence[at]
    chosen = [int(np.argmax(standing))]
    for at in range(windows - 1, 0, -1):
        chosen.append(int(came[at, chosen[-1]]))
    return chosen[::-1], standing - standing.max()
