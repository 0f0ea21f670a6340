"""The parts of a film above its shots: segments joined into scenes, scenes into chapters, and titles of them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from kinodex.pipeline.models.captioner import greedy_settings, load_chat_model, prompt_of, replies
from kinodex.pipeline.models.hub import Loaded, reads_pictures

if TYPE_CHECKING:
    from PIL.Image import Image

# Divide a sequence into groups of neighbours, each as alike within as can be.
#
# The sum of squares of each group about its mean, plus a price for every border, is least: found by dynamic programming
# (Fisher 1958, "On grouping for maximum homogeneity"; Rotman et al. 2016 divide films so, "Robust and efficient video
# scene detection using optimal sequential grouping"). A group's mean, not its neighbours, decides: a dialogue that cuts
# to and fro between two faces is one group, where a threshold on neighbouring shots would find a border at every cut.
#
# A sequence of n items with groups of at most m takes O(n m d) for d dimensions and O(n m) memory.

Floats = NDArray[np.float64]

STEPS = 12
"""Halvings of the range of prices, on a scale of logarithms."""
RANGE = 1e4
"""How far the price may be changed, either way."""
SHORT_COST = 3.0
"""Extra price of a group that is too short, in prices of a border: one that stands out that much stays."""
LAGS = 2
"""Items so far apart are near."""
STILL = 1e-9
"""Noise below this is rounding."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One kind of evidence: `vectors` [n, d] and `weights` [n], 0 where an item lacks this evidence.

    Differences below `least_noise` (a squared distance) count as noise even where neighbours are more alike.
    """

    vectors: Floats
    weights: Floats
    least_noise: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a grouping: numbers of groups, most items in one, and the shortest length of a group.

    `border_price` is in units of noise: cutting pure noise in two lowers its sum of squares by one unit, by chance by
    two, and by more where neighbours are more alike than the group is, for they are what noise is measured by.
    """

    border_price: float
    fewest: int
    most: int
    longest_items: int
    shortest: float


def divide(features: Sequence[Feature], lengths: Floats, border_prices: Floats, limits: Limits) -> list[int]:
    """Divide n items into groups and return the first item of each.

    `lengths` [n] are those of the items; `border_prices` [n] scale the price of a border before each item (that of the
    first is not used). Only if the price gives fewer or more groups than `limits` allow is it changed. Where items are
    all alike there may be fewer than the fewest.
    """
    count = len(lengths)
    if not count:
        return []
    used = [each for each in features if np.count_nonzero(each.weights) > 1]
    longest = min(limits.longest_items, count)
    costs = sum((_band(each, longest) for each in used), np.zeros((count, longest)))
    unit = sum(float(np.median(each.weights[each.weights > 0])) for each in used) or 1.0
    shorts = SHORT_COST * _short(lengths, limits.shortest, longest)

    def at(price: float) -> list[int]:
        return _best_starts(costs + price * shorts, price * border_prices)

    return _within(at, limits.border_price * unit, limits)


def _within(at: Callable[[float], list[int]], price: float, limits: Limits) -> list[int]:
    """Change the price until the number of groups is allowed: the nearest price that is found by halving."""
    found = at(price)
    if limits.fewest <= len(found) <= limits.most:
        return found
    too_many = len(found) > limits.most
    near, far = 0.0, np.log(RANGE) if too_many else -np.log(RANGE)
    best = at(price * float(np.exp(far)))
    for _ in range(STEPS):
        middle = (near + far) / 2
        found = at(price * float(np.exp(middle)))
        if len(found) > limits.most if too_many else len(found) < limits.fewest:
            near = middle
        else:
            far, best = middle, found
    return best


def _band(feature: Feature, longest: int) -> Floats:
    """Sums of squares about the mean, in noise, of the k + 1 items up to i [n, longest]; inf before the first."""
    vectors, weights = feature.vectors, feature.weights
    held = weights > 0
    centred = (vectors - vectors[held].mean(axis=0)) * held[:, None]
    noise = max(_noise(centred[held]), feature.least_noise)
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(centred * weights[:, None], axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(weights * np.einsum("nd,nd->n", centred, centred))])
    totals = np.concatenate([[0.0], np.cumsum(weights)])
    norms = np.einsum("nd,nd->n", sums, sums)
    band = np.full((len(weights), longest), np.inf)
    for end in range(1, len(sums)):
        first = max(0, end - longest)
        between = norms[first:end] + norms[end] - 2.0 * (sums[first:end] @ sums[end])
        total = totals[end] - totals[first:end]
        mean = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
        band[end - 1, : end - first] = np.maximum(squares[end] - squares[first:end] - mean, 0.0)[::-1]
    return band / noise


def _noise(vectors: Floats) -> float:
    """Variance within groups: half the median squared distance of items that are near, most of which share a group.

    Not of neighbours alone, which are more alike than others of their group where the picture changes little by little.
    """
    steps = [vectors[lag:] - vectors[:-lag] for lag in range(1, min(LAGS, len(vectors) - 1) + 1)]
    distances = np.concatenate([np.einsum("nd,nd->n", each, each) for each in steps])
    return max(float(np.median(distances)) / 2, STILL)


def _short(lengths: Floats, shortest: float, longest: int) -> Floats:
    """1 for each group of `_band` that is shorter than allowed, else 0 [n, longest]."""
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    short = np.zeros((len(lengths), longest))
    for items in range(1, longest + 1):
        short[items - 1 :, items - 1] = ends[items:] - ends[:-items] < shortest
    return short


def _best_starts(costs: Floats, prices: Floats) -> list[int]:
    """Find the groups of least cost, by the best grouping of each beginning of the sequence."""
    count, longest = costs.shape
    best = np.zeros(count + 1)
    begin = np.zeros(count + 1, np.int64)
    paid = np.concatenate([[0.0], prices[1:]])
    for end in range(1, count + 1):
        first = max(0, end - longest)
        totals = best[first:end] + paid[first:end] + costs[end - 1, : end - first][::-1]
        begin[end] = first + int(np.argmin(totals))
        best[end] = totals[begin[end] - first]
    starts, end = [], count
    while end:
        end = int(begin[end])
        starts.append(end)
    return starts[::-1]


# Join the segments of a film into scenes, and its scenes into chapters.
#
# Two kinds of evidence are weighed against each other, each in units of its own noise (see `Feature`): pictures, the
# vectors of the segments, and words, what is said, read or written of them. A border costs less where nobody speaks
# around it and more inside a line that is being spoken. Chapters are found as scenes are, with each scene as one item.
#
# The result is the same for the same input, takes time in proportion to the length of the film, and has a bounded
# number of parts: of two hours 8 to 20 chapters and 40 to 120 scenes, of a minute one chapter.

SCENE_S = (60.0, 180.0)
"""Mean lengths between which scenes may lie: 40 to 120 in two hours, as films are counted by hand."""
SHORT_FILM_SCENES, SHORT_FILM_SCENE_S = 8, 10.0
"""A short film may have as many scenes as this, of so many seconds each: a minute may show six places."""
SHORTEST_SCENE_S, SHORTEST_CHAPTER_S = 8.0, 30.0
"""Shorter ones have to stand out more: an inserted shot is no scene."""
FILM_S, FILM_CHAPTERS = 7200.0, (8, 20)
"""Chapters grow with the root of the length: a list of them stays short enough to be read, 2 to 5 of ten minutes and
27 to 69 of a day."""
SCENE_PRICE, CHAPTER_PRICE = 8.0, 3.0
"""Of a border, in units of noise. Shots that follow one another are more alike than others of a scene, scenes that do
are not: with 3, a place of two minutes falls into three scenes, with 8 it is one."""
LONGEST_SHARE = 3.0
"""The longest group has so many times the items of the mean one, if there are as few as can be."""
LEAST_PICTURE_NOISE, LEAST_WORD_NOISE = 0.02, 0.1
"""Squared distances of unit vectors: of pictures of one place with another in front of it, and of texts."""
UNIT_S, MOST_UNITS = 1.0, 20_000
"""Segments shorter than this are taken together, and so are many of a recording of days: both bound the work."""
SILENCE_S, SILENCE_PAUSES = 10.0, 3.0
"""A silence of this length, and of so many times the film's usual pause, makes a border as cheap as one can."""
SILENT_PRICE, SPOKEN_PRICE = 0.8, 1.5
"""What a border costs in silence, and inside a spoken line, against one elsewhere."""


@dataclass(frozen=True, slots=True)
class FilmStructure:
    """First segments of the scenes, and first scenes of the chapters; both begin with 0 unless there is nothing."""

    scenes: tuple[int, ...] = ()
    chapters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Film:
    """The segments of a film: times, lengths, vectors (zeros where there is none), texts, and lines that are spoken."""

    spans_s: Sequence[tuple[float, float]]
    seconds: Floats
    vectors: Floats
    texts: Sequence[str]
    lines_s: Sequence[tuple[float, float]]
    silence_s: float


def find_structure(
    spans_s: Sequence[tuple[float, float]],
    pictures: NDArray[np.floating[Any]] | None = None,
    texts: Sequence[str] = (),
    lines_s: Sequence[tuple[float, float]] = (),
) -> FilmStructure:
    """Find the scenes and chapters of a film.

    Args:
        spans_s: `[start_s, end_s)` of its n segments, in order.
        pictures: a vector of each segment [n, d], unit length; zeros for one without. None: no pictures.
        texts: what is said, read or written of each segment, n of them, or none.
        lines_s: times of the lines that are spoken, by which silence is known.
    """
    count = len(spans_s)
    vectors = np.zeros((count, 1)) if pictures is None else np.asarray(pictures, np.float64)
    texts = texts or [""] * count
    if not len(vectors) == len(texts) == count:
        raise ValueError(f"got {count} segments, {len(vectors)} vectors and {len(texts)} texts; give one of each")
    seconds = np.array([max(end_s - start_s, 0.0) for start_s, end_s in spans_s])
    film = _Film(spans_s, seconds, vectors, texts, spoken_s := _merged(lines_s), _long_silence(spoken_s))
    film_s, units = float(seconds.sum()), _units(seconds)
    scenes = _joined(film, units, scene_limits(film_s, len(units)))
    chapters = _joined(film, scenes, chapter_limits(film_s, len(scenes)))
    places = {first: number for number, first in enumerate(scenes)}
    return FilmStructure(tuple(scenes), tuple(places[first] for first in chapters))


def scene_limits(film_s: float, segments: int) -> Limits:
    shortest_s, longest_s = SCENE_S
    most = max(film_s / shortest_s, min(SHORT_FILM_SCENES, film_s / SHORT_FILM_SCENE_S))
    fewest = max(1, int(film_s / longest_s))
    return Limits(SCENE_PRICE, fewest, max(1, int(most)), _longest(segments, fewest), SHORTEST_SCENE_S)


def chapter_limits(film_s: float, scenes: int) -> Limits:
    fewest, most = (max(1, int(count * math.sqrt(film_s / FILM_S))) for count in FILM_CHAPTERS)
    return Limits(CHAPTER_PRICE, fewest, most, _longest(scenes, fewest), SHORTEST_CHAPTER_S)


def _longest(items: int, fewest: int) -> int:
    return items if fewest == 1 else math.ceil(LONGEST_SHARE * items / fewest)


def _units(seconds: Floats) -> list[int]:
    """First segments of the units that are joined: segments, the shortest taken together."""
    least_s = max(UNIT_S, float(seconds.sum()) / MOST_UNITS)
    firsts: list[int] = []
    filled_s = least_s
    for number, length_s in enumerate(seconds):
        if filled_s >= least_s:
            firsts.append(number)
            filled_s = 0.0
        filled_s += float(length_s)
    return firsts


def _joined(film: _Film, firsts: Sequence[int], limits: Limits) -> list[int]:
    """First segments of the groups of items, which begin with these segments."""
    if not firsts:
        return []
    bounds = [*firsts, len(film.seconds)]
    lengths_s = np.add.reduceat(film.seconds, firsts)
    pictured = np.where(film.vectors.any(axis=1), film.seconds, 0.0)
    weights = np.add.reduceat(pictured, firsts)
    sums = np.add.reduceat(film.vectors * pictured[:, None], firsts, axis=0)
    means = np.divide(sums, weights[:, None], out=np.zeros_like(sums), where=weights[:, None] > 0)
    words = word_vectors([" ".join(film.texts[first:end]) for first, end in pairwise(bounds)])
    worded = np.where(words.any(axis=1), lengths_s, 0.0)
    features = [Feature(means, weights, LEAST_PICTURE_NOISE), Feature(words, worded, LEAST_WORD_NOISE)]
    prices = np.array([_border_price(film, first) for first in firsts])
    starts = divide(features, lengths_s, prices, limits)
    return [firsts[start] for start in starts]


def _border_price(film: _Film, first: int) -> float:
    """Price of a border before a segment: by the silence around it, or the line or the gap that it lies in."""
    time_s = film.spans_s[first][0]
    if first and time_s - film.spans_s[first - 1][1] >= SILENCE_S:
        return SILENT_PRICE
    if not film.lines_s:
        return 1.0
    after = bisect_left(film.lines_s, (time_s, time_s))
    said_until_s = film.lines_s[after - 1][1] if after else -math.inf
    said_from_s = film.lines_s[after][0] if after < len(film.lines_s) else math.inf
    if said_until_s > time_s:
        return SPOKEN_PRICE
    return 1.0 - (1.0 - SILENT_PRICE) * min((said_from_s - said_until_s) / film.silence_s, 1.0)


def _long_silence(spoken_s: Sequence[tuple[float, float]]) -> float:
    """Seconds of a silence that is long in this film: where somebody speaks once a minute, a minute is nothing."""
    pauses_s = [after[0] - before[1] for before, after in pairwise(spoken_s)]
    return max(SILENCE_S, SILENCE_PAUSES * float(np.median(pauses_s))) if pauses_s else SILENCE_S


def _merged(lines_s: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Times at which anybody speaks, in order, without overlap."""
    merged: list[tuple[float, float]] = []
    for start_s, end_s in sorted(lines_s):
        if merged and start_s <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end_s, merged[-1][1])
        else:
            merged.append((start_s, end_s))
    return merged


# Words of a film's parts as vectors, without a model: how much two parts speak of the same things.
#
# Words are weighed by how few parts hold them (tf-idf; Salton and Buckley 1988), which leaves the small words of any
# language without weight and without a list of them, and hashed into a fixed number of dimensions with signs
# (Weinberger et al. 2009, "Feature hashing for large scale multitask learning"). Parts that share words have a change
# of topic between them where they stop sharing, as in TextTiling (Hearst 1997).

DIMENSIONS = 256
WORD = regex.compile(r"\w+")
LEAST_LETTERS = 3
"""Of words in an alphabet; a letter of a script without spaces counts as a word."""
NO_SPACES = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]\p{M}*"
)


def word_vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Make unit vectors [n, 256] of texts; zeros for a text without a word that tells it from the others."""
    counts = [Counter(_words(text)) for text in texts]
    held = Counter(word for each in counts for word in each)
    worded = sum(map(bool, counts))
    vectors = np.zeros((len(texts), DIMENSIONS))
    for vector, words in zip(vectors, counts, strict=True):
        for word, count in words.items():
            code = crc32(word.encode())
            sign = 1.0 if code & 1 else -1.0
            vector[(code >> 1) % DIMENSIONS] += sign * (1.0 + np.log(count)) * np.log(worded / held[word])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit


def _words(text: str) -> list[str]:
    words = WORD.findall(text.casefold())
    plain = [word for word in words if len(word) >= LEAST_LETTERS and not NO_SPACES.search(word)]
    return plain + [letter for word in words for letter in NO_SPACES.findall(word)]


# Write titles and summaries of parts of a video with a local model: of words alone, or one that reads pictures too.

PROMPT = Path(__file__).parent / "models" / "prompts" / "contents.jinja"
MAX_NEW_TOKENS = 128
CONTEXT_TOKENS = 2048
"""Longest prompt where a model does not say what it takes, and one that small models still follow."""
PICTURE_TOKENS = 256
"""Room left for each picture of a prompt."""


@dataclass(frozen=True, slots=True)
class PartLines:
    """A part of a video as the model gets it: lines about it in order, or pictures where there are none."""

    lines: tuple[str, ...]
    images: tuple[Image, ...]
    duration_s: float


class WriterReply(NamedTuple):
    """Words of the model; they are not whole where they reached the most new tokens before their end."""

    text: str
    is_whole: bool


class Writer:
    """A loaded language model; greedy, so the same part gets the same words."""

    def __init__(self, loaded: Loaded, sees: bool, max_new_tokens: int = MAX_NEW_TOKENS) -> None:
        self._loaded = loaded
        self._tokenizer = loaded.processor.tokenizer if sees else loaded.processor
        self._settings = greedy_settings(loaded.model.generation_config, self._tokenizer, max_new_tokens)
        config = loaded.model.config
        held = getattr(getattr(config, "text_config", config), "max_position_embeddings", CONTEXT_TOKENS)
        self._longest = min(held, CONTEXT_TOKENS) - max_new_tokens
        self.sees = sees
        """True if it reads pictures."""

    def write(self, parts: Sequence[PartLines]) -> list[WriterReply | None]:
        """Write of each part what the prompt asks for, all in one batch; None of one that gives it nothing to go by.

        Of more lines than the model takes, some at even distances are given.
        """
        known = [at for at, part in enumerate(parts) if part.lines or (part.images and self.sees)]
        replies: list[WriterReply | None] = [None] * len(parts)
        for at, reply in zip(known, self._generate([parts[at] for at in known]), strict=True):
            replies[at] = reply
        return replies

    def _generate(self, parts: Sequence[PartLines]) -> list[WriterReply]:
        if not parts:
            return []
        written = replies(self._loaded, [self._chat(part) for part in parts], self._settings)
        texts: list[str] = self._tokenizer.batch_decode(written, skip_special_tokens=True)
        ends = self._settings.eos_token_id
        ended = [
            any(token in row for token in (ends if isinstance(ends, list) else [ends])) for row in written.tolist()
        ]
        return [WriterReply(text, is_whole) for text, is_whole in zip(texts, ended, strict=True)]

    def _chat(self, part: PartLines) -> list[dict[str, Any]]:
        images = part.images if self.sees else ()
        words = self._fitting(part, self._longest - PICTURE_TOKENS * len(images))
        if not self.sees:
            return [{"role": "user", "content": words}]
        shown = [{"type": "image", "image": image} for image in images]
        return [{"role": "user", "content": [*shown, {"type": "text", "text": words}]}]

    def _fitting(self, part: PartLines, longest: int) -> str:
        """The prompt with as many lines as fit, half as many each time; the last one left stays."""
        lines = part.lines
        while True:
            words = prompt_of(PROMPT).render(lines=lines, images=len(part.images), duration_s=part.duration_s).strip()
            if len(lines) <= 1 or len(self._tokenizer(words)["input_ids"]) <= longest:
                return words
            lines = lines[::2]


def load_writer(name: str, device: str = "auto", max_new_tokens: int = MAX_NEW_TOKENS) -> Writer:
    """Load the model `name`, a hub id or a folder; raises ModelMissing, WrongModel or NoSuchDevice."""
    sees = reads_pictures(name)
    loaded = load_chat_model("ImageTextToText" if sees else "CausalLM", name, device)
    return Writer(loaded, sees, max_new_tokens)
