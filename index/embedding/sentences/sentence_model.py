"""A sentence model by transformers, with torch: it embeds a library's lines, and is exported for searches without it.

A model is named by its hub id ("sentence-transformers/all-MiniLM-L6-v2") or its folder. What sentence-transformers
keeps beside the weights is read and done as it says (see `model_facts`); that package itself is not needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.embedding.fingerprint import Fingerprint, sha256_of_json
from index.embedding.model_source import quick_hub
from index.embedding.sentences.model_facts import LONGEST, ModelFacts, read_facts
from index.embedding.space import chosen_device, import_torchvision
from index.errors import BadCheckpoint, TorchMissing, WeightsMissing

if TYPE_CHECKING:
    import torch

BATCH = 64
OF_OTHER_HEADS = ("pooler.", "lm_head.", "cls.")
"""Weights that embed nothing: some checkpoints lack them, and then they are random numbers."""
OF_THE_WRITER = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache")
"""Entries of a `config.json` that the vectors do not depend on."""


class SentenceEmbedder(Protocol):
    """Embeds texts in the space of a sentence model; `space` is its identity."""

    @property
    def space(self) -> Fingerprint: ...

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries as unit vectors float32 [n, dim]."""

    def embed_lines(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed lines that are searched as unit vectors float32 [n, dim]."""


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
        import torch

        settings = {"padding": True, "truncation": True, "max_length": self.facts.max_length}
        inputs = self.tokenizer(texts, return_tensors="pt", **settings).to(self._device)
        states = self.model(**inputs).last_hidden_state
        shown = inputs["attention_mask"]
        if self.facts.pooling == "mean":
            weights = shown.unsqueeze(-1).float()
            pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        else:
            places = shown.argmax(1) if self.facts.pooling == "cls" else _last(shown)
            pooled = states[torch.arange(len(texts), device=self._device), places]
        return torch.nn.functional.normalize(pooled.float(), dim=-1)


def load_sentence_model(name: str, device: str = "auto") -> SentenceModel:
    """Load the sentence model of this hub id or folder on `device` ("auto", "cpu", "cuda", ...).

    Raises WeightsMissing, BadCheckpoint, DeviceMissing, or TorchMissing without torch or transformers.
    """
    name = _absolute(name)
    if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise WeightsMissing(f"got the sentence model {name}, a folder without config.json; give a copy of a model")
    try:
        import_torchvision()
        import transformers
    except ModuleNotFoundError as error:
        raise TorchMissing(
            f"cannot load the sentence model {name}: {error.name} is not installed; `pip install 'kinodex[hf]'` "
            "brings it"
        ) from error
    place = chosen_device(device)
    with _hub_of(name), _quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            model, found = transformers.AutoModel.from_pretrained(name, output_loading_info=True)
        except Exception as error:  # the errors of loaders for foreign or damaged files cannot be listed
            raise _load_error(name, error) from error
        facts = read_facts(name, lambda path: _read_json(name, path), *_limits(model, tokenizer))
    if tokenizer.get_vocab().keys() <= set(tokenizer.all_special_tokens):  # transformers makes up what is missing
        raise WeightsMissing(
            f"the sentence model {name} comes without the words of its tokenizer; put tokenizer.json beside its weights"
        )
    missing = [key for key in found["missing_keys"] if not key.startswith(OF_OTHER_HEADS)]
    if missing:
        raise BadCheckpoint(f"got the sentence model {name}, whose weights lack {missing[0]}; fetch it again")
    space = _fingerprint(name, model, tokenizer, facts)
    return SentenceModel(space, model.eval().to(place), tokenizer, place)


def _limits(model: Any, tokenizer: Any) -> tuple[str, int]:
    """Find the word for padding, and the most tokens that a text may have."""
    places = int(getattr(model.config, "max_position_embeddings", 0) or LONGEST)
    if type(model).__name__.startswith(("Roberta", "XLMRoberta", "Camembert", "MPNet")):
        places -= int(model.config.pad_token_id) + 1  # their first position comes after that of padding
    return str(tokenizer.pad_token or ""), min(int(tokenizer.model_max_length), places)


def _last(shown: torch.Tensor) -> torch.Tensor:
    """Find the last position of each text that is no padding, on whichever side that is."""
    return shown.shape[1] - 1 - shown.flip(1).argmax(1)


def _absolute(name: str) -> str:
    """Make a folder's name absolute: a library stores it, and may be opened anywhere."""
    folder = Path(name).expanduser() if name.startswith("~/") else Path(name)
    return str(folder.absolute()) if folder.is_dir() else name


def _hub_of(name: str) -> AbstractContextManager[bool]:
    return nullcontext(False) if Path(name).is_dir() else quick_hub()


@contextmanager
def _quiet() -> Iterator[None]:
    """Show neither warnings of transformers nor its bars of progress within this block."""
    from transformers import utils

    logging: Any = utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _load_error(name: str, error: Exception) -> WeightsMissing | BadCheckpoint:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
    if isinstance(error, OSError):
        return WeightsMissing(
            f"the sentence model {name} cannot be had: {reason}; give the folder of a copy (config.json, "
            "model.safetensors, tokenizer.json and what else is there), or a hub id that this machine can reach"
        )
    return BadCheckpoint(f"cannot load the sentence model {name}: {reason}; give a model of sentence-transformers")


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
    with _hub_of(name):
        config = _read_json(name, "config.json") or {}
    plain = {key: value for key, value in config.items() if key not in OF_THE_WRITER}
    identity = sha256_of_json({"config": plain, "vocabulary": tokenizer.get_vocab()})
    weights, dim = _weights_sha256(model), int(model.config.hidden_size)
    return Fingerprint(name, identity[:12], weights, facts.as_json(), dim)


def _weights_sha256(model: Any) -> str:
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        if not key.startswith(OF_OTHER_HEADS):
            digest.update(f"{key} {tuple(tensor.shape)}".encode())
            digest.update(tensor.float().contiguous().numpy())
    return digest.hexdigest()
