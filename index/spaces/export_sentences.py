"""Export of a sentence model to a folder that is searched with without torch, and its check against the original."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.export_text import CHECK_TEXTS, write_tower
from kinodex.index.spaces.export_tokenizer import export_plain_tokenizer
from kinodex.index.spaces.sentence_model import SentenceModel, pooled
from kinodex.index.spaces.sentence_tower import SentenceTower
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import TowerFacts

if TYPE_CHECKING:
    import torch


def export_sentence_model(model: SentenceModel, folder: Path) -> TowerFacts:
    """Write a sentence model to `folder` as a text tower, in half precision where that is near enough.

    Raises ExportRefused if torch cannot export it, or if a text of the check has a vector with a cosine below 0.9999
    to torch's.
    """
    tokenizer, pad_id = model.tokenizer, int(model.tokenizer.pad_token_id)
    settings = export_plain_tokenizer(tokenizer, model.facts.max_length, folder)
    what, expected = f"the sentence model {model.space.name}", model.embed_lines(CHECK_TEXTS)

    def features(transformer: Any, ids: torch.Tensor) -> torch.Tensor:
        shown = (ids != pad_id).long()
        states = transformer(input_ids=ids, attention_mask=shown).last_hidden_state
        return pooled(states, shown, model.facts.pooling)

    def embed(tower: TextTower) -> NDArray[np.float32]:
        return SentenceTower(tower).embed_lines(CHECK_TEXTS)

    return write_tower(folder, what, model.space, model.model, features, settings, CHECK_TEXTS, expected, embed)
