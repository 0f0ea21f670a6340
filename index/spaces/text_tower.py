"""Text tower of a space without torch: tokenizer and transformer of an exported one, read from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces import tokenizer
from kinodex.index.spaces.array_file import ArrayFile, ArrayReader
from kinodex.index.spaces.towers import Fingerprint, read_whole

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
        states = _mean(states, looked_at[:, places])
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


def _mean(states: Floats, shown: NDArray[np.bool_]) -> Floats:
    """Average the vectors [texts, positions, width] of each text's positions that may be looked at."""
    weights = shown[..., None].astype(np.float32)
    means: Floats = (states * weights).sum(1) / np.maximum(weights.sum(1), np.float32(1e-9))
    return means


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
    tokenizer: tokenizer.TokenizerSettings

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TextSettings:
        """Read settings from JSON values; raises TypeError or KeyError if they are another's."""
        of_tokenizer = tokenizer.settings_from_json(found["tokenizer"])
        return cls(TransformerSettings(**found["transformer"]), of_tokenizer)


class TextTower:
    """Embeds texts as the space does whose text tower was exported. Several threads may use one at once."""

    def __init__(self, folder: Path, fingerprint: Fingerprint, settings: TextSettings) -> None:
        """Read the tokenizer, and of the weights the header; raises BadCheckpoint if a file is damaged."""
        self.fingerprint = fingerprint
        self.settings = settings
        self._weights = ArrayFile(folder / WEIGHTS)
        self._tokenizer = tokenizer.Tokenizer(folder, settings.tokenizer)

    @classmethod
    def open(cls, folder: Path) -> TextTower:
        """Open the text tower of a folder; raises TowersDamaged, or BadCheckpoint if a file cannot be read."""
        space, tower = read_whole(folder, "text")
        try:
            settings = TextSettings.from_json(tower.settings)
        except (TypeError, KeyError) as error:
            raise TowersDamaged(f"the settings of the text tower in {folder} are not known here: {error}") from error
        return cls(folder, space, settings)

    @property
    def name(self) -> str:
        """Name of the space."""
        return self.fingerprint.name

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self.fingerprint.dim

    def token_ids(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Make the token ids [n, context length] of texts."""
        return self._tokenizer(texts)

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim]."""
        vectors = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return vectors
        ids = self.token_ids(texts)
        shortest_first = np.argsort((ids != ids[:, -1:]).sum(1), kind="stable")  # so that a batch is as short as it can
        with self._weights.reader() as reader:
            for first in range(0, len(texts), TEXT_BATCH):
                rows = shortest_first[first : first + TEXT_BATCH]
                vectors[rows] = text_features(reader, self.settings.transformer, ids[rows])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
        return units
