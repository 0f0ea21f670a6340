"""Text tower of a space without torch: tokenizer and transformer of an exported one, read from its folder."""

from __future__ import annotations

import html
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, TowersDamaged, checked_text
from kinodex.index.spaces.towers import (
    KEPT_BYTES,
    ArrayFile,
    ArrayReader,
    Fingerprint,
    one_blas_thread,
    read_whole,
    write_arrays,
)

# Tokenizer of an exported text tower: open_clip's cleaning of a text, and its token ids by the package tokenizers.

TOKENIZER_JSON, VOCABULARY = "tokenizer.json", "vocabulary.safetensors"
Cleaning = Literal["lower", "whitespace", "canonicalize", "none"]
SINGLE_BYTES = tuple(f"<0x{number:02X}>" for number in range(256))
"""Words for the bytes of a letter that no word has, where a model falls back on them."""
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class TokenizerSettings:
    """The facts of a tokenizer of open_clip that no file of the package tokenizers holds."""

    context_length: int
    cleaning: Cleaning
    always: tuple[str, ...] = ()
    """Words that are needed for any text: for what is unknown, for the ends of a text, for padding."""
    unknown: str = ""
    """Word that stands for what a unigram model does not know."""
    dropped_id: int = -1
    """Token that becomes 0 wherever it stands: open_clip can strip the separator that ends a text."""


UNSPLIT: dict[str, None] = {"normalizer": None, "pre_tokenizer": None}
"""Parts of a tokenizer that hold regular expressions."""
PARTS_KEPT = 4096
"""Parts of texts, mostly words, whose lookups a tokenizer remembers."""


class Tokenizer:
    """Makes token ids of texts."""

    def __init__(self, folder: Path, settings: TokenizerSettings) -> None:
        """Read the tokenizer's files; raises BadCheckpoint if they are damaged."""
        import tokenizers

        self.settings = settings
        self._vocabulary = Vocabulary(folder / VOCABULARY)
        try:
            self._frame: dict[str, Any] = json.loads((folder / TOKENIZER_JSON).read_text(encoding="utf-8"))
            self._without_words = tokenizers.Tokenizer.from_str(json.dumps(self._frame))
        except Exception as error:  # the package raises plain exceptions
            raise BadCheckpoint(f"cannot read {folder / TOKENIZER_JSON}: {error}; make the text tower again") from error
        self._added = {each["content"]: int(each["id"]) for each in self._frame["added_tokens"]}
        with_bytes = SINGLE_BYTES if self._frame["model"].get("byte_fallback") else ()
        self._always = self._vocabulary.find((*settings.always, *with_bytes))
        self._words_of_part = lru_cache(PARTS_KEPT)(self._vocabulary.words_in)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Make token ids [n, context length] of texts."""
        import tokenizers

        cleaned = [clean(text, self.settings.cleaning) for text in texts]
        words = self._words(cleaned)
        numbers = {word.text: word.number for word in words} | self._added
        unknown = numbers.get(self.settings.unknown, -1)
        model = self._frame["model"] | small_model(self._frame["model"]["type"], words, self.settings.unknown)
        compiled = self._without_words  # its expressions are compiled once: that takes longer than all the rest
        filled = tokenizers.Tokenizer.from_str(json.dumps(self._frame | UNSPLIT | {"model": model}))
        for part in UNSPLIT:
            if (held := getattr(compiled, part)) is not None:
                setattr(filled, part, held)
        encoded = filled.encode_batch(cleaned)
        ids = np.array([[numbers.get(token, unknown) for token in each.tokens] for each in encoded], np.int64)
        ids = ids.reshape(len(texts), self.settings.context_length)
        return np.where(ids == self.settings.dropped_id, 0, ids) if self.settings.dropped_id >= 0 else ids

    def _words(self, texts: Iterable[str]) -> list[Word]:
        """Find all words that the tokens of these texts can be."""
        model = self._frame["model"]
        marks = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
        parts = {part for text in texts for part in self._parts(text)}
        found = [word for part in parts for word in self._words_of_part(part, *marks)]
        words = {word.text: word for word in [*self._always, *found]}
        return list(words.values())

    def _parts(self, text: str) -> Iterable[str]:
        """Split a text as the tokenizer does before it looks for words."""
        normalizer, splitter = self._without_words.normalizer, self._without_words.pre_tokenizer
        for raw in self._between_added(text):
            normal = normalizer.normalize_str(raw) if normalizer else raw
            for segment in self._between_added(normal):
                yield from (part for part, _ in splitter.pre_tokenize_str(segment)) if splitter else (segment,)

    def _between_added(self, text: str) -> list[str]:
        """List a text and, if added tokens stand in it, what stands between them: it is tokenized by itself."""
        segments = [text]
        for token in self._added:
            if token in text:
                segments = [piece for segment in segments for piece in segment.split(token)]
        return segments if len(segments) == 1 else [text, *segments]


def small_model(kind: str, words: Sequence[Word], unknown: str) -> dict[str, Any]:
    """Describe a model of some words, numbered as they come, to the package tokenizers."""
    if kind == "Unigram":
        texts = [word.text for word in words]
        unk_id = texts.index(unknown) if unknown in texts else None
        return {"vocab": [[word.text, word.score] for word in words], "unk_id": unk_id}
    vocabulary = {word.text: number for number, word in enumerate(words)}
    if kind != "BPE":
        return {"vocab": vocabulary}
    merges = sorted(merge for word in words for merge in word.merges)
    merges = [each for each in merges if each[1] in vocabulary and each[2] in vocabulary]
    return {"vocab": vocabulary, "merges": [[left, right] for _, left, right in merges]}


def clean(text: str, cleaning: Cleaning) -> str:
    """Clean a text as open_clip does, or not at all ("none"); raises QueryError for one that is not UTF-8."""
    if cleaning == "none":
        return checked_text(text)
    if not (text.isascii() and text.isprintable() and "&" not in text):  # else there is nothing to mend
        import ftfy

        text = html.unescape(html.unescape(ftfy.fix_text(checked_text(text))))
    if cleaning == "canonicalize":
        text = text.strip().replace("_", " ").translate(NO_PUNCTUATION)
    text = " ".join(text.split())
    return text if cleaning == "whitespace" else " ".join(text.lower().split())


def settings_from_json(found: Mapping[str, Any]) -> TokenizerSettings:
    """Read settings from JSON values."""
    return TokenizerSettings(**{**found, "always": tuple(found["always"])})


# Vocabulary of a tokenizer in a file, of which a text takes only the words that it can be made of.
#
# Reading the 256,000 words and half a million merges of SigLIP 2 by the package tokenizers takes 0.7 s and 200 MB, to
# write a line of text as ten numbers. A tokenizer uses only words that are parts of its text. So they are looked up
# here, by a hash of every part, and the tokenizer is made of what is found: the same numbers, in milliseconds.

HASH_BASE = 0x9E3779B97F4A7C15
"""Odd, so that no power of it is 0 modulo 2^64: digits of the golden ratio."""
MODULUS = 1 << 64


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the vocabulary."""

    text: str
    number: int
    score: float = 0.0
    """Logarithm of its probability in a unigram model."""
    merges: tuple[tuple[int, str, str], ...] = ()
    """Rank, left and right half of the merges that make it, in a model of byte pairs."""


def write_vocabulary(path: Path, words: Iterable[Word]) -> None:
    """Write the words of a tokenizer to a file; raises ValueError if two words have one hash."""
    ordered = sorted(((text_hash(word.text), word) for word in words), key=lambda each: each[0])
    hashes = np.array([each for each, _ in ordered], np.uint64)
    if len(np.unique(hashes)) != len(hashes):
        raise ValueError("two words of the vocabulary have the same hash")
    texts = [word.text.encode() for _, word in ordered]
    merges = [merge for _, word in ordered for merge in word.merges]
    arrays: dict[str, NDArray[Any]] = {
        "hashes": hashes,
        "numbers": np.array([word.number for _, word in ordered], np.uint32),
        "scores": np.array([word.score for _, word in ordered], np.float64),
        "text_ends": np.cumsum([len(text) for text in texts], dtype=np.uint32),
        "texts": np.frombuffer(b"".join(texts), np.uint8),
        "longest": np.array([max((len(word.text) for _, word in ordered), default=0)], np.uint32),
        "merge_ends": np.cumsum([len(word.merges) for _, word in ordered], dtype=np.uint32),
        "merge_ranks": np.array([rank for rank, _, _ in merges], np.uint32),
        "merge_places": np.array([len(left) for _, left, _ in merges], np.uint16),
    }
    write_arrays(path, arrays)


class Vocabulary:
    """The words of a tokenizer in a file, which is mapped into memory: only pages that are looked at are read."""

    def __init__(self, path: Path) -> None:
        """Map the file; raises BadCheckpoint if it is damaged."""
        file = ArrayFile(path)
        self._hashes, self._numbers, self._scores = file.map("hashes"), file.map("numbers"), file.map("scores")
        self._text_ends, self._texts = file.map("text_ends"), file.map("texts")
        self._merge_ends, self._ranks = file.map("merge_ends"), file.map("merge_ranks")
        self._places = file.map("merge_places")
        self._longest = int(file.map("longest")[0])

    def find(self, texts: Iterable[str]) -> list[Word]:
        """Find words by their whole texts, as far as there are such words."""
        rows = self._rows(np.array([text_hash(text) for text in texts], np.uint64))
        return [self._word(row) for row in rows]

    def words_in(self, text: str, prefix: str = "", suffix: str = "") -> list[Word]:
        """Find the words that are parts of a text: as they are, after `prefix`, and before `suffix`.

        Both are marks of a tokenizer. A word with the hash of another may come too, which does no harm.
        """
        rows: set[int] = set()
        for length, hashes in self._hashes_of_parts(text):
            rows.update(self._rows(hashes))
            if prefix:
                rows.update(self._rows(hashes + np.uint64(_joined(text_hash(prefix), length, 0))))
            if suffix:
                power = np.uint64(pow(HASH_BASE, len(suffix), MODULUS))
                rows.update(self._rows(hashes * power + np.uint64(text_hash(suffix))))
        return [self._word(row) for row in sorted(rows)]

    def _hashes_of_parts(self, text: str) -> Iterable[tuple[int, NDArray[np.uint64]]]:
        """Hash the parts of a text, by length: the hash up to the end of each, less that up to its start, shifted."""
        totals = [0]
        for letter in text:
            totals.append(_joined(totals[-1], 1, ord(letter) + 1))
        sums = np.array(totals, np.uint64)
        for length in range(1, min(self._longest, len(text)) + 1):
            yield length, sums[length:] - sums[:-length] * np.uint64(pow(HASH_BASE, length, MODULUS))

    def _rows(self, hashes: NDArray[np.uint64]) -> list[int]:
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        rows: list[int] = places[self._hashes[places] == hashes].tolist()
        return rows

    def _word(self, row: int) -> Word:
        start, end = _bounds(self._text_ends, row)
        text = self._texts[start:end].tobytes().decode()
        first, last = _bounds(self._merge_ends, row)
        places, ranks = self._places[first:last].tolist(), self._ranks[first:last].tolist()
        merges = tuple((rank, text[:place], text[place:]) for rank, place in zip(ranks, places, strict=True))
        return Word(text, int(self._numbers[row]), float(self._scores[row]), merges)


def words_of(model: Mapping[str, Any]) -> list[Word]:
    """List the words of a model of the package tokenizers, as its file describes it."""
    if model["type"] == "Unigram":
        return [Word(text, number, score) for number, (text, score) in enumerate(model["vocab"])]
    merges: dict[str, list[tuple[int, str, str]]] = {}
    for rank, merge in enumerate(model.get("merges", ())):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        merges.setdefault(left + right, []).append((rank, left, right))
    return [Word(text, number, merges=tuple(merges.get(text, ()))) for text, number in model["vocab"].items()]


def text_hash(text: str) -> int:
    """Hash a text as a polynomial of its code points, modulo 2^64."""
    total = 0
    for letter in text:
        total = (total * HASH_BASE + ord(letter) + 1) % MODULUS
    return total


def _joined(left: int, right_length: int, right_hash: int) -> int:
    return (left * pow(HASH_BASE, right_length, MODULUS) + right_hash) % MODULUS


def _bounds(ends: NDArray[Any], row: int) -> tuple[int, int]:
    return int(ends[row - 1]) if row else 0, int(ends[row])


# Text transformers in numpy, a layer in memory at a time: those of open_clip (CLIP, SigLIP, CoCa), and BERT's kind.
#
# The blocks are those of Vaswani et al. 2017, with the norm after each part, as there and in BERT (Devlin et al. 2019),
# or before it, as in CLIP (Radford et al. 2021, section 2.4); the options of open_clip (norms of queries and keys, of
# heads, of the hidden layer, layer scale) are taken where the file has their weights.

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Activation = Literal["gelu", "gelu_tanh", "quick_gelu"]
Pool = Literal["first", "last", "argmax", "eos", "mean", "last_shown"]
ClassKey = Literal["none", "first", "last"]

HIDDEN = np.float32(-1e30)
"""Added to the score of a position that may not be looked at."""
ERF_SLOPE = np.float32(0.4)
ERF_TERMS = (-0.20027006, 0.70919174, -0.37098043, 0.46833294, 0.16179990, 0.23192588)
"""Least-squares fit of erfc(x) exp(x^2) by a polynomial in 1 / (1 + 0.4 x) (the form of Abramowitz and Stegun 1964,
formula 7.1.26), highest power first: right to 3e-8, and with the rounding of float32 to 4e-7 near 0."""


@dataclass(frozen=True, slots=True)
class TransformerSettings:
    """The facts of a text transformer that the shapes of its weights do not show."""

    layers: int
    heads: int
    norm_eps: float
    activation: Activation
    causal: bool
    """A position looks at itself and those before it."""
    pool: Pool
    """Position whose vector stands for the text: the first, the last, the highest id's, that of `eos_id`, or the last
    that is no padding; or the mean of all that are none (Reimers and Gurevych 2019)."""
    eos_id: int = 0
    pad_id: int = 0
    hides_padding: bool = False
    """Positions of `pad_id` are not looked at."""
    class_key: ClassKey = "none"
    """With a class token, which stands last: the place of its key in the mask of padding. CoCa's weights were made
    with a mask whose class key comes first, so that each key is hidden by the padding of the position before it."""
    norm_after: bool = False
    """Each part of a block is added before its norm, and the embeddings have a norm of their own."""


def text_features(reader: ArrayReader, settings: TransformerSettings, ids: Ids) -> Floats:
    """Compute features of token ids [n, positions] where they have influence: float32 [n, dim], not normalised."""
    looked_at, pooled = _mask(settings, ids)
    kept = np.asarray(looked_at.any(axis=0))
    if settings.causal:
        kept[int(pooled.max()) + 1 :] = False
    kept[pooled] = True
    places = np.flatnonzero(kept)
    states = _embedded(reader, settings, ids, places)
    hidden = _hidden(settings, looked_at, places)
    for number in range(settings.layers):
        states = _block(reader, settings, f"blocks.{number}.", states, hidden)
    if settings.pool == "mean":
        shown = looked_at[:, places, None].astype(np.float32)
        states = (states * shown).sum(1) / np.maximum(shown.sum(1), np.float32(1e-9))
    else:
        states = states[np.arange(len(ids)), np.searchsorted(places, pooled)]
    if not settings.norm_after:
        states = _norm(reader, "final_norm", states, settings.norm_eps)
    return _linear(reader, "projection", states) if reader.has("projection.weight") else states


def _mask(settings: TransformerSettings, ids: Ids) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Find the positions of each text that may be looked at, and the pooled one."""
    shown = ids != settings.pad_id if settings.hides_padding else np.ones(ids.shape, bool)
    if settings.class_key != "none":
        extra = np.ones((len(ids), 1), bool)
        shown = np.concatenate([extra, shown] if settings.class_key == "first" else [shown, extra], axis=1)
    if settings.pool == "argmax":
        return shown, ids.argmax(1)
    if settings.pool == "eos":
        return shown, (ids == settings.eos_id).argmax(1)
    if settings.pool == "last_shown":
        return shown, len(shown[0]) - 1 - shown[:, ::-1].argmax(1)
    return shown, np.full(len(ids), 0 if settings.pool in ("first", "mean") else shown[0].size - 1)


def _embedded(reader: ArrayReader, settings: TransformerSettings, ids: Ids, places: NDArray[np.intp]) -> Floats:
    words = places[places < ids.shape[1]]
    states = reader.rows("token_embedding", ids[:, words])
    if settings.class_key != "none":
        token = reader.whole("class_embedding")
        states = np.concatenate([states, np.broadcast_to(token, (len(ids), 1, token.size))], axis=1)
    states = states + reader.rows("positions", places)
    return _norm(reader, "embedding_norm", states, settings.norm_eps) if settings.norm_after else states


def _hidden(settings: TransformerSettings, looked_at: NDArray[np.bool_], places: NDArray[np.intp]) -> Floats | None:
    """Make the mask that is added to the scores [n or 1, 1, queries, keys]; None if all is looked at."""
    shown = looked_at[:, None, None, places]
    if settings.causal:
        shown = shown & (places[:, None] >= places)
    if shown.all():
        return None
    return np.where(shown, np.float32(0), HIDDEN)


def _block(
    reader: ArrayReader, settings: TransformerSettings, prefix: str, states: Floats, hidden: Floats | None
) -> Floats:
    eps = settings.norm_eps
    if settings.norm_after:
        states = states + _attention(reader, settings, prefix, states, hidden)
        states = _norm(reader, f"{prefix}norm_1", states, eps)
        step = activate(settings.activation, _linear(reader, f"{prefix}mlp.in", states))
        return _norm(reader, f"{prefix}norm_2", states + _linear(reader, f"{prefix}mlp.out", step), eps)
    step = _attention(reader, settings, prefix, _norm(reader, f"{prefix}norm_1", states, eps), hidden)
    step = _optional_norm(reader, f"{prefix}attention_norm", step, eps)
    states = states + _scaled(reader, f"{prefix}scale_1", step)
    step = _linear(reader, f"{prefix}mlp.in", _norm(reader, f"{prefix}norm_2", states, eps))
    step = _optional_norm(reader, f"{prefix}mlp.norm", activate(settings.activation, step), eps)
    return states + _scaled(reader, f"{prefix}scale_2", _linear(reader, f"{prefix}mlp.out", step))


def _attention(
    reader: ArrayReader, settings: TransformerSettings, prefix: str, states: Floats, hidden: Floats | None
) -> Floats:
    texts, positions, width = states.shape
    mixed = _linear(reader, f"{prefix}attention.in", states)
    mixed = mixed.reshape(texts, positions, 3, settings.heads, -1).transpose(2, 0, 3, 1, 4)
    queries, keys, values = mixed  # each [texts, heads, positions, width / heads]
    queries = _optional_norm(reader, f"{prefix}attention.query_norm", queries, settings.norm_eps)
    keys = _optional_norm(reader, f"{prefix}attention.key_norm", keys, settings.norm_eps)
    scores = queries @ keys.swapaxes(-1, -2) * np.float32(queries.shape[-1] ** -0.5)
    if hidden is not None:
        scores += hidden
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = _scaled(reader, f"{prefix}attention.head_scale", weights @ values)
    found = found.transpose(0, 2, 1, 3).reshape(texts, positions, width)
    found = _optional_norm(reader, f"{prefix}attention.inner_norm", found, settings.norm_eps)
    return _linear(reader, f"{prefix}attention.out", found)


def _linear(reader: ArrayReader, name: str, states: Floats) -> Floats:
    rows = states.reshape(-1, states.shape[-1])
    result = np.empty((len(rows), reader.shape(f"{name}.weight")[0]), np.float32)
    for first, part in reader.parts(f"{name}.weight"):
        np.matmul(rows, part.T, out=result[:, first : first + len(part)])
    if reader.has(f"{name}.bias"):
        result += reader.whole(f"{name}.bias")
    return result.reshape(*states.shape[:-1], -1)


def _norm(reader: ArrayReader, name: str, states: Floats, eps: float) -> Floats:
    """Apply layer norm (Ba et al. 2016)."""
    states = states - states.mean(-1, keepdims=True)
    states /= np.sqrt(np.square(states).mean(-1, keepdims=True) + np.float32(eps))
    states *= reader.whole(f"{name}.weight")
    if reader.has(f"{name}.bias"):
        states += reader.whole(f"{name}.bias")
    return states


def _optional_norm(reader: ArrayReader, name: str, states: Floats, eps: float) -> Floats:
    return _norm(reader, name, states, eps) if reader.has(f"{name}.weight") else states


def _scaled(reader: ArrayReader, name: str, states: Floats) -> Floats:
    return states * reader.whole(name) if reader.has(name) else states


def activate(activation: Activation, states: Floats) -> Floats:
    """Apply GELU (Hendrycks and Gimpel 2016), exactly, by tanh, or by a sigmoid of 1.702 x as the first CLIP did."""
    if activation == "quick_gelu":
        gated: Floats = states / (1 + np.exp(np.minimum(np.float32(-1.702) * states, 80)))
        return gated
    if activation == "gelu_tanh":
        inner = states * (1 + np.float32(0.044715) * np.square(states)) * np.float32((2 / np.pi) ** 0.5)
        curved: Floats = np.float32(0.5) * states * (1 + np.tanh(inner))
        return curved
    return np.float32(0.5) * states * (1 + erf(states * np.float32(0.5**0.5)))


def erf(numbers: Floats) -> Floats:
    """Compute the error function of float32 numbers, which numpy does not have, so that GELU is right to 1e-7."""
    size = np.abs(numbers)
    step = 1 / (1 + ERF_SLOPE * size)
    tail = np.zeros_like(step)
    for term in ERF_TERMS:
        tail += np.float32(term)
        tail *= step
    return np.copysign(1 - tail * np.exp(-np.square(size)), numbers)


WEIGHTS = "text.safetensors"
TEXT_BATCH = 16


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Settings of an exported text tower; JSON values in `tower.json`."""

    transformer: TransformerSettings
    tokenizer: TokenizerSettings

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TextSettings:
        """Read settings from JSON values; raises TypeError or KeyError if they are another's."""
        of_tokenizer = settings_from_json(found["tokenizer"])
        return cls(TransformerSettings(**found["transformer"]), of_tokenizer)


class TextTower:
    """Embeds texts as the space does whose text tower was exported. Several threads may use one at once."""

    def __init__(self, folder: Path, fingerprint: Fingerprint, settings: TextSettings) -> None:
        """Read the tokenizer, and of the weights the header; raises BadCheckpoint if a file is damaged."""
        self.fingerprint, self.name, self.dim = fingerprint, fingerprint.name, fingerprint.dim
        self.settings = settings
        self._weights = ArrayFile(folder / WEIGHTS)
        self._may_keep = self._weights.bytes_as_read("token_embedding") <= KEPT_BYTES
        self._calls = 0
        self._tokenizer = Tokenizer(folder, settings.tokenizer)

    @classmethod
    def open(cls, folder: Path) -> TextTower:
        """Open the text tower of a folder; raises TowersDamaged, or BadCheckpoint if a file cannot be read."""
        space, tower = read_whole(folder, "text")
        try:
            settings = TextSettings.from_json(tower.settings)
        except (TypeError, KeyError) as error:
            raise TowersDamaged(f"the settings of the text tower in {folder} are not known here: {error}") from error
        return cls(folder, space, settings)

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim].

        From the second call on the weights stay in memory: who asks once, as a command does, need not hold them.
        """
        vectors = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return vectors
        self._calls += 1
        ids = self._tokenizer(texts)
        shortest_first = np.argsort((ids != ids[:, -1:]).sum(1), kind="stable")  # so that a batch is as short as it can
        keep = self._may_keep and self._calls > 1
        with self._weights.reader(keep=keep) as reader, one_blas_thread.held():
            for first in range(0, len(texts), TEXT_BATCH):
                rows = shortest_first[first : first + TEXT_BATCH]
                vectors[rows] = text_features(reader, self.settings.transformer, ids[rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
        return units
