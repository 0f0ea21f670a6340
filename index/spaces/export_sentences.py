"""Export of a sentence model to a folder that is searched with without torch, and its check against the original."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.export_text import VECTOR_TEXTS, check_ids, write_tower
from kinodex.index.spaces.export_tokenizer import export_plain_tokenizer
from kinodex.index.spaces.sentence_model import SentenceModel, pooled
from kinodex.index.spaces.sentence_tower import SentenceTower
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.tokenizer import Tokenizer
from kinodex.index.spaces.towers import TowerFacts

if TYPE_CHECKING:
    import torch


def export_sentence_model(model: SentenceModel, folder: Path) -> TowerFacts:
    """Write a sentence model to `folder` as a text tower, in half precision where that is near enough.

    Raises ExportRefused if torch cannot export it, or if the export differs. All texts of the check must have the same
    token ids, and every sixteenth a vector with a cosine of at least 0.9999 to torch's: to compare all 200 vectors took
    all-MiniLM-L6-v2 4 CPU s more.
    """
    tokenizer, pad_id = model.tokenizer, int(model.tokenizer.pad_token_id)
    settings = export_plain_tokenizer(tokenizer, model.facts.max_length, folder)
    check_ids(model.space.name, Tokenizer(folder, settings), lambda texts: _ids(model, texts))
    what, expected = f"the sentence model {model.space.name}", _vectors(model)

    def features(transformer: Any, ids: torch.Tensor) -> torch.Tensor:
        shown = (ids != pad_id).long()
        states = transformer(input_ids=ids, attention_mask=shown).last_hidden_state
        return pooled(states, shown, model.facts.pooling)

    def embed(tower: TextTower) -> NDArray[np.float32]:
        return _vectors(SentenceTower(tower))

    return write_tower(folder, what, model.space, model.model, features, settings, VECTOR_TEXTS, expected, embed)


def _vectors(model: SentenceModel | SentenceTower) -> NDArray[np.float32]:
    """Embed the texts of the check; the last, which is long, alone, as a batch is computed as long as its longest."""
    return np.concatenate([model.embed_lines(texts) for texts in (VECTOR_TEXTS[:-1], VECTOR_TEXTS[-1:])])


def _ids(model: SentenceModel, texts: list[str]) -> NDArray[np.int64]:
    """Make token ids of texts by the original tokenizer, padded to the model's length."""
    settings = {"padding": "max_length", "truncation": True, "max_length": model.facts.max_length}
    ids: NDArray[np.int64] = model.tokenizer(texts, return_tensors="np", **settings)["input_ids"]
    return ids
