"""Export of a sentence model to a folder that is searched with without torch, and its check against the original."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.embedding.portable.array_file import write_arrays
from index.embedding.portable.check_texts import CHECK_TEXTS
from index.embedding.portable.export_text import LARGEST_HALF, MIN_COSINE
from index.embedding.portable.export_tokenizer import export_plain_tokenizer
from index.embedding.portable.text_tower import WEIGHTS, TextSettings, TextTower
from index.embedding.portable.tokenizer import TOKENIZER_JSON, VOCABULARY
from index.embedding.portable.tower_files import TowerFacts, tower_facts
from index.embedding.portable.transformer import Activation, Pool, TransformerSettings
from index.embedding.sentences.sentence_model import SentenceModel
from index.embedding.sentences.sentence_tower import SentenceTower
from index.errors import ExportRefused

Arrays = dict[str, NDArray[np.float32]]

SHIFTED = ("roberta", "xlm-roberta", "camembert")
COVERED = ("bert", *SHIFTED)
"""Kinds of transformers, by their `model_type`, that have BERT's blocks; the first positions of some are padding's."""
BLOCK = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")
PARTS = {
    "attention.output.dense": "attention.out",
    "attention.output.LayerNorm": "norm_1",
    "intermediate.dense": "mlp.in",
    "output.dense": "mlp.out",
    "output.LayerNorm": "norm_2",
}
MIXED = ("query", "key", "value")
ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
}
POOLS: Mapping[str, Pool] = {"mean": "mean", "cls": "first", "lasttoken": "last_shown"}


def export_sentence_model(model: SentenceModel, folder: Path) -> TowerFacts:
    """Write a sentence model to `folder` as a text tower, in half precision where that is near enough.

    The folder's `tower.json` is the caller's to write. Raises ExportRefused with the reason if the model is of a kind
    that is not covered, or if a text of the check has a vector with a cosine below 0.9999 to torch's.
    """
    arrays, transformer = _transformer(model)
    settings = TextSettings(transformer, export_plain_tokenizer(model.tokenizer, model.facts.max_length, folder))
    expected = model.embed_lines(CHECK_TEXTS)
    least, worst = -1.0, ""
    fits_half = all(np.abs(each).max(initial=0) <= LARGEST_HALF for each in arrays.values())
    for floats in ("F16", "F32") if fits_half else ("F32",):
        write_arrays(folder / WEIGHTS, arrays, floats)
        vectors = SentenceTower(TextTower(folder, model.space, settings)).embed_lines(CHECK_TEXTS)
        cosines = np.nan_to_num((vectors.astype(np.float64) * expected).sum(1), nan=-1.0)
        least, worst = float(cosines.min()), CHECK_TEXTS[int(cosines.argmin())]
        if least >= MIN_COSINE:
            names = (WEIGHTS, TOKENIZER_JSON, VOCABULARY)
            return tower_facts(folder, names, asdict(settings), len(CHECK_TEXTS), round(least, 7))
    what = f"its vector of {worst[:60]!r} has a cosine of {least:.5f} to torch's"
    raise ExportRefused(f"the sentence model {model.space.name} cannot be exported: {what}, {MIN_COSINE} is needed")


def _transformer(model: SentenceModel) -> tuple[Arrays, TransformerSettings]:
    """Read settings and weights of a transformer of BERT's kind, by our names."""
    config = model.model.config
    if config.model_type not in COVERED:
        raise ExportRefused(f"this sentence model is of the kind {config.model_type}, which is not covered")
    if config.hidden_act not in ACTIVATIONS:
        raise ExportRefused(f"this sentence model has the activation {config.hidden_act}, which is not covered")
    if getattr(config, "is_decoder", False):
        raise ExportRefused("this sentence model looks at earlier words alone (is_decoder), which is not covered")
    settings = TransformerSettings(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        norm_eps=config.layer_norm_eps,
        activation=ACTIVATIONS[config.hidden_act],
        causal=False,
        pool=POOLS[model.facts.pooling],
        pad_id=int(model.tokenizer.pad_token_id),
        hides_padding=True,
        norm_after=True,
    )
    weights = {name: tensor.detach().cpu().float().numpy() for name, tensor in model.model.state_dict().items()}
    first = int(config.pad_token_id) + 1 if config.model_type in SHIFTED else 0
    return _embeddings(weights, first, model.facts.max_length) | _blocks(weights), settings


def _embeddings(weights: Mapping[str, NDArray[np.float32]], first: int, max_length: int) -> Arrays:
    """Read what the words are embedded by; the kind of a token, always the first, is added to its position."""
    positions = weights["embeddings.position_embeddings.weight"][first : first + max_length]
    return {
        "token_embedding": weights["embeddings.word_embeddings.weight"],
        "positions": positions + weights["embeddings.token_type_embeddings.weight"][0],
        "embedding_norm.weight": weights["embeddings.LayerNorm.weight"],
        "embedding_norm.bias": weights["embeddings.LayerNorm.bias"],
    }


def _blocks(weights: Mapping[str, NDArray[np.float32]]) -> Arrays:
    arrays: Arrays = {}
    for name, value in weights.items():
        block = BLOCK.fullmatch(name)
        if block is None:
            continue
        number, part, kind = block.groups()
        if part in PARTS:
            arrays[f"blocks.{number}.{PARTS[part]}.{kind}"] = value
        elif part == "attention.self.query":
            mixed = [weights[f"encoder.layer.{number}.attention.self.{each}.{kind}"] for each in MIXED]
            arrays[f"blocks.{number}.attention.in.{kind}"] = np.concatenate(mixed)
        elif not part.startswith("attention.self."):
            raise ExportRefused(f"this sentence model has weights {name}, which the numpy tower does not compute with")
    return arrays
