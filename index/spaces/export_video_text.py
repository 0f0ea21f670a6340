"""Export of the tower of a video-text model that embeds texts: searching by words needs no torch then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.export_text import VECTOR_TEXTS, write_tower
from kinodex.index.spaces.export_tokenizer import export_plain_tokenizer
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import TowerFacts
from kinodex.index.spaces.video_text import VideoTextModel, text_features

if TYPE_CHECKING:
    import torch


def export_video_text_model(model: VideoTextModel, folder: Path) -> TowerFacts:
    """Write the text tower of a video-text model to `folder`; raises ExportRefused if torch cannot export it."""
    pad_id = int(model.tokenizer.pad_token_id)
    settings = export_plain_tokenizer(model.tokenizer, model.text_length, folder)
    what, expected = f"the video-text model {model.space.name}", model.embed_texts(VECTOR_TEXTS)

    def features(whole: Any, ids: torch.Tensor) -> torch.Tensor:
        return text_features(whole, {"input_ids": ids, "attention_mask": (ids != pad_id).long()})

    def embed(tower: TextTower) -> NDArray[np.float32]:
        return tower.embed_text(VECTOR_TEXTS)

    return write_tower(folder, what, model.space, model.model, features, settings, VECTOR_TEXTS, expected, embed)
