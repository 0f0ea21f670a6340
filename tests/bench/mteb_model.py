"""A space of kinodex as a model of MTEB (https://github.com/embeddings-benchmark/mteb), which brings its own tasks.

    import mteb
    from tests.bench.mteb_model import SpaceModel

    mteb.evaluate(SpaceModel("ViT-B-32-SigLIP2-256/webli"), mteb.get_tasks(modalities=["image"]))

Texts are embedded as queries are, pictures as stored frames are, and a video as the mean of its frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.spaces.load import load_image_tower, load_text_tower

Floats = NDArray[np.float32]
FRAMES_AT_ONCE = 16
OPEN = (
    *("release_date", "languages", "n_parameters", "memory_usage_mb", "max_tokens", "license", "open_weights"),
    *("public_training_code", "public_training_data", "training_datasets"),
)


class SpaceModel:
    """The encoder that MTEB asks for: vectors of unit length, compared by their cosines."""

    def __init__(self, space: str, device: str = "auto") -> None:
        self._texts, self._pictures = load_text_tower(space), load_image_tower(space, device)

    @property
    def mteb_model_meta(self) -> Any:
        """Facts that MTEB notes of a model; those that only the space's makers know are left open."""
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        space = self._pictures.fingerprint
        unknown = dict.fromkeys(OPEN)
        name = f"kinodex/{space.name.rstrip('/').rpartition('/')[2] or space.name}"
        facts = {
            "name": name,
            "revision": space.digest,
            "embed_dim": space.dim,
            "modalities": ["text", "image", "video"],
        }
        return ModelMeta(
            loader=None,
            framework=["NumPy"],
            similarity_fn_name=ScoringFunction.COSINE,
            use_instructions=False,
            **unknown,
            **facts,
        )

    def encode(self, inputs: Iterable[Mapping[str, Any]], **task: Any) -> Floats:
        """Embed batches of texts, pictures or videos; what has several of them gets their mean."""
        return np.concatenate([self._embedded(batch) for batch in inputs])

    def similarity(self, one: Any, other: Any) -> Any:
        """The cosines of all pairs."""
        return _unit(np.asarray(one)) @ _unit(np.asarray(other)).T

    def similarity_pairwise(self, one: Any, other: Any) -> Any:
        """The cosine of each with its counterpart."""
        return (_unit(np.asarray(one)) * _unit(np.asarray(other))).sum(axis=1)

    def _embedded(self, batch: Mapping[str, Any]) -> Floats:
        found = []
        if "text" in batch:
            found.append(np.asarray(self._texts.embed_text(list(batch["text"])), np.float32))
        if "image" in batch:
            found.append(self._of_pictures([np.asarray(each.convert("RGB")) for each in batch["image"]]))
        if "video" in batch:
            found.append(np.stack([self._of_video(each) for each in batch["video"]]))
        return _unit(np.mean(found, axis=0))

    def _of_pictures(self, pictures: Sequence[NDArray[np.uint8]]) -> Floats:
        parts = []
        for first in range(0, len(pictures), FRAMES_AT_ONCE):
            prepared = [self._pictures.prepare(each) for each in pictures[first : first + FRAMES_AT_ONCE]]
            parts.append(np.asarray(self._pictures.embed(np.stack(prepared)), np.float32))
        return np.concatenate(parts)

    def _of_video(self, frames: Any) -> Floats:
        """The mean of a video's frames, uint8 `[n, 3, height, width]`, or a list of pictures."""
        if isinstance(frames, Sequence) and frames and isinstance(frames[0], Image.Image):
            pictures = [np.asarray(each.convert("RGB")) for each in frames]
        else:
            pictures = [*np.asarray(frames).transpose(0, 2, 3, 1)]
        mean: Floats = self._of_pictures(pictures).mean(axis=0)
        return mean


def _unit(vectors: NDArray[Any]) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit
