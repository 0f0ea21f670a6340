"""A sentence model by transformers, with torch: it embeds a library's lines, and is exported for searches without it.

A model is named by its hub id ("sentence-transformers/all-MiniLM-L6-v2") or its folder. What sentence-transformers
keeps beside the weights is read and done as it says (see `ModelFacts`); that package itself is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, WeightsMissing
from kinodex.index.spaces.fingerprint import Fingerprint, sha256_of_json
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.sentence_facts import LONGEST, ModelFacts, Pooling, read_facts
from kinodex.index.spaces.space import chosen_device, unit
from kinodex.index.spaces.transformers_models import (
    OF_OTHER_HEADS,
    OF_THE_WRITER,
    hub_of,
    load_error,
    quiet,
    weights_sha256,
    with_transformers,
)

if TYPE_CHECKING:
    import torch

ZERO_LENGTH = 1e-9


def pooled(states: torch.Tensor, shown: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Make one vector of the states of each text's tokens, of which `shown` are no padding."""
    import torch

    if pooling == "mean":
        weights = shown.unsqueeze(-1).float()
        return (states * weights).sum(1) / weights.sum(1).clamp(min=ZERO_LENGTH)
    last = shown.shape[1] - 1 - shown.flip(1).argmax(1)  # that is no padding, on whichever side that is
    places = shown.argmax(1) if pooling == "cls" else last
    return states[torch.arange(states.shape[0], device=states.device), places]


BATCH = 64


class SentenceModel:
    """A loaded sentence model."""

    def __init__(self, space: Fingerprint, model: Any, tokenizer: Any, device: torch.device) -> None:
        self.space = space
        self.facts = ModelFacts.of(space)
        self.model = model
        self.tokenizer = tokenizer
        self._device = device

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries as unit vectors float32 [n, dim]."""
        return self._embed([self.facts.query(text) for text in texts])

    def embed_lines(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed lines that are searched as unit vectors float32 [n, dim]."""
        return self._embed([self.facts.line(text) for text in texts])

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        vectors = np.empty((len(texts), self.space.dim), np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # so that a batch is as short as it can
        with torch.inference_mode():
            for first in range(0, len(order), BATCH):
                rows = order[first : first + BATCH]
                vectors[rows] = self._batch([texts[at] for at in rows]).cpu().numpy()
        return vectors

    def _batch(self, texts: list[str]) -> torch.Tensor:

        settings = {"padding": True, "truncation": True, "max_length": self.facts.max_length}
        inputs = self.tokenizer(texts, return_tensors="pt", **settings).to(self._device)
        states = self.model(**inputs).last_hidden_state
        return unit(pooled(states, inputs["attention_mask"], self.facts.pooling))


def load_sentence_model(name: str, device: str = "auto") -> SentenceModel:
    """Load a sentence model by hub id or folder; raises WeightsMissing, BadCheckpoint, DeviceMissing, TorchMissing."""
    name, transformers = with_transformers("the sentence model", name)
    place = chosen_device(device)
    with hub_of(name), quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
            model, found = transformers.AutoModel.from_pretrained(
                name, output_loading_info=True, trust_remote_code=False, use_safetensors=True
            )
        except Exception as error:  # the errors of loaders for foreign or damaged files cannot be listed
            raise load_error(f"the sentence model {name}", error) from error
        facts = read_facts(name, lambda path: _read_json(name, path), *_limits(model, tokenizer))
    if tokenizer.get_vocab().keys() <= set(tokenizer.all_special_tokens):  # transformers makes up what is missing
        raise WeightsMissing(
            f"the sentence model {name} comes without the words of its tokenizer; put tokenizer.json beside its weights"
        )
    missing = [key for key in found["missing_keys"] if not key.startswith(OF_OTHER_HEADS)]
    if missing:
        raise BadCheckpoint(f"got the sentence model {name}, whose weights lack {missing[0]}; fetch it again")
    space = _fingerprint(name, model, tokenizer, facts)
    note_model(name)
    return SentenceModel(space, model.eval().to(place), tokenizer, place)


def _limits(model: Any, tokenizer: Any) -> tuple[str, int]:
    """Find the word for padding, and the most tokens that a text may have."""
    places = int(getattr(model.config, "max_position_embeddings", 0) or LONGEST)
    if type(model).__name__.startswith(("Roberta", "XLMRoberta", "Camembert", "MPNet")):
        places -= int(model.config.pad_token_id) + 1  # their first position comes after that of padding
    return str(tokenizer.pad_token or ""), min(int(tokenizer.model_max_length), places)


def _read_json(name: str, path: str) -> Any:
    """Read one of a model's files of JSON, from its folder or the hub; None where it has none of that name."""
    from transformers.utils.hub import cached_file

    folder, _, file = path.rpartition("/")
    found = cached_file(name, file, subfolder=folder, _raise_exceptions_for_missing_entries=False)
    if found is None:
        return None
    try:
        return json.loads(Path(found).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadCheckpoint(f"cannot read {path} of the sentence model {name}: {error}") from error


def _fingerprint(name: str, model: Any, tokenizer: Any, facts: ModelFacts) -> Fingerprint:
    with hub_of(name):
        config = _read_json(name, "config.json") or {}
    plain = {key: value for key, value in config.items() if key not in OF_THE_WRITER}
    identity = sha256_of_json({"config": plain, "vocabulary": tokenizer.get_vocab()})
    weights, dim = weights_sha256(model), int(model.config.hidden_size)
    return Fingerprint(name, identity[:12], weights, facts.as_json(), dim)
