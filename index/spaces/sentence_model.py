"""Models of sentences: lines of text as unit vectors, by transformers once, and for searches without torch.

torch and transformers load only inside functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, TorchMissing, WeightsMissing, checked_text
from kinodex.index.spaces.export_text import CHECK_TEXTS, CHECKS, write_tower
from kinodex.index.spaces.export_tokenizer import export_plain_tokenizer
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.space import chosen_device, import_torchvision, quick_hub, unit
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import Fingerprint, TowerFacts, sha256_of_json

if TYPE_CHECKING:
    import torch

# Export of a sentence model to a folder that is searched with without torch, and its check against the original.

ZERO_LENGTH = 1e-9


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


def pooled(states: torch.Tensor, shown: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Make one vector of the states of each text's tokens, of which `shown` are no padding."""
    import torch

    if pooling == "mean":
        weights = shown.unsqueeze(-1).float()
        return (states * weights).sum(1) / weights.sum(1).clamp(min=ZERO_LENGTH)
    last = shown.shape[1] - 1 - shown.flip(1).argmax(1)  # that is no padding, on whichever side that is
    places = shown.argmax(1) if pooling == "cls" else last
    return states[torch.arange(states.shape[0], device=states.device), places]


# Likeness from which on a sentence model's lines count as found: a nearest line always exists, like or not.
#
# How near two texts are that have nothing in common differs from model to model: about 0 for all-MiniLM-L6-v2, 0.7 for
# E5. So it is measured once for each: `QUERIES` and `LINES` are about different things, and their cosines are those of
# chance. A line is found from `DEVIATIONS` standard deviations above their mean on.

DEVIATIONS = 4.0
QUERIES: tuple[str, ...] = tuple(CHECKS["queries"])
LINES: tuple[str, ...] = tuple(CHECKS["lines"])


@dataclass(frozen=True, slots=True)
class Likeness:
    """The cosines of a sentence model's texts that have nothing in common."""

    mean: float
    deviation: float

    @property
    def least(self) -> float:
        """The least cosine of a line that counts as found."""
        return min(self.mean + DEVIATIONS * self.deviation, 1.0)


def measure_likeness(model: SentenceEmbedder) -> Likeness:
    """Compare `QUERIES` and `LINES` by a model; the same model gives the same numbers, to its rounding."""
    cosines = model.embed_texts(QUERIES) @ model.embed_lines(LINES).T
    return Likeness(round(float(np.mean(cosines)), 4), round(float(np.std(cosines)), 4))


# Facts of a sentence model that its weights do not show, from the files that sentence-transformers keeps beside them.
#
# `modules.json` lists what is computed, `1_Pooling/config.json` how a text's tokens become one vector,
# `sentence_bert_config.json` how many tokens count, and `config_sentence_transformers.json` what is written before a
# query and before a line that is searched (sentence-transformers 6.2, `sentence_transformer/model.py`, `encode_query`
# and `encode_document`). A folder without them is a plain transformer: the mean of its tokens, nothing before a text.

Pooling = Literal["mean", "cls", "lasttoken"]
ReadJson = Callable[[str], Any]
"""Reads one of the model's files by its path there; None where the model has no such file."""

POOLINGS: Mapping[str, Pooling] = {"mean": "mean", "cls": "cls", "lasttoken": "lasttoken"}
OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Switches of files that sentence-transformers wrote before its version 5.4."""
COVERED_PARTS = ("Transformer", "Pooling", "Normalize")
QUERY_PROMPTS, LINE_PROMPTS = ("query",), ("document", "passage", "corpus")
LONGEST = 512
"""Tokens that count where no file says how many: what BERT was trained with."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts of a sentence model that its vectors depend on, beside its weights."""

    pooling: Pooling
    max_length: int
    """Tokens of a text that count, its marks of start and end among them."""
    query_prompt: str
    """Written before a query ("query: ")."""
    line_prompt: str
    """Written before a line that is searched ("passage: ")."""
    pad_token: str

    @classmethod
    def of(cls, fingerprint: Fingerprint) -> ModelFacts:
        """Read the facts that the fingerprint of a sentence model holds."""
        return cls(**json.loads(fingerprint.preprocess))

    def as_json(self) -> str:
        """Write the facts for a fingerprint."""
        return json.dumps(asdict(self), sort_keys=True)

    def query(self, text: str) -> str:
        """Make the model's input of a query."""
        return self.query_prompt + self._plain(text)

    def line(self, text: str) -> str:
        """Make the model's input of a line that is searched."""
        return self.line_prompt + self._plain(text)

    def _plain(self, text: str) -> str:
        """Take out the word for padding, which would be hidden in some towers and not in others."""
        plain = checked_text(text)
        return (plain.replace(self.pad_token, " ") if self.pad_token else plain).strip()


def read_facts(name: str, read: ReadJson, pad_token: str, longest: int) -> ModelFacts:
    """Read the facts of a model that takes at most `longest` tokens; raises BadCheckpoint if it computes more."""
    pooling_path = "1_Pooling"
    for module in read("modules.json") or ():
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind not in COVERED_PARTS:
            raise BadCheckpoint(
                f"got the sentence model {name}, which has a {kind}; give one of {', '.join(COVERED_PARTS)} alone, "
                "such as sentence-transformers/all-MiniLM-L6-v2"
            )
        if kind == "Pooling":
            pooling_path = str(module["path"])
    pooling = read(str(PurePosixPath(pooling_path) / "config.json")) or {}
    config = read("config_sentence_transformers.json") or {}
    prompts = {key: text for key, text in (config.get("prompts") or {}).items() if text}
    default = str(prompts.get(config.get("default_prompt_name") or "", ""))
    query, line = (
        next((prompts[name] for name in names if name in prompts), default) for names in (QUERY_PROMPTS, LINE_PROMPTS)
    )
    if (query or line) and not pooling.get("include_prompt", True):
        raise BadCheckpoint(f"got the sentence model {name}, whose pooling leaves its prompts out; give another")
    limit = (read("sentence_bert_config.json") or {}).get("max_seq_length") or longest
    return ModelFacts(_pooling(name, pooling), min(int(limit), longest), query, line, pad_token)


def _pooling(name: str, config: Mapping[str, Any]) -> Pooling:
    """Find the one way in which the tokens of a text become its vector."""
    modes: Any = config.get("pooling_mode") or [mode for key, mode in OLD_POOLINGS.items() if config.get(key)] or "mean"
    found = [modes] if isinstance(modes, str) else list(modes)
    if len(found) != 1 or found[0] not in POOLINGS:
        raise BadCheckpoint(
            f"got the sentence model {name}, which pools by {' and '.join(found)}; give one that pools by "
            f"{', '.join(POOLINGS)}"
        )
    return POOLINGS[found[0]]


# A sentence model by transformers, with torch: it embeds a library's lines, and is exported for searches without it.
#
# A model is named by its hub id ("sentence-transformers/all-MiniLM-L6-v2") or its folder. What sentence-transformers
# keeps beside the weights is read and done as it says (see `ModelFacts`); that package itself is not needed.

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


def with_transformers(what: str, name: str) -> tuple[str, Any]:
    """Give the whole name of a model of transformers, for a library stores it, and that package.

    Raises WeightsMissing for a folder without a model, TorchMissing where the package is not installed.
    """
    folder = Path(name).expanduser() if name.startswith("~/") else Path(name)
    name = str(folder.absolute()) if folder.is_dir() else name
    if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise WeightsMissing(f"got {what} {name}, a folder without config.json; give a copy of a model")
    try:
        import_torchvision()
        import transformers
    except ModuleNotFoundError as error:
        raise TorchMissing(
            f"cannot load {what} {name}: {error.name} is not installed; `pip install 'kinodex[hf]'` brings it"
        ) from error
    return name, transformers


def _limits(model: Any, tokenizer: Any) -> tuple[str, int]:
    """Find the word for padding, and the most tokens that a text may have."""
    places = int(getattr(model.config, "max_position_embeddings", 0) or LONGEST)
    if type(model).__name__.startswith(("Roberta", "XLMRoberta", "Camembert", "MPNet")):
        places -= int(model.config.pad_token_id) + 1  # their first position comes after that of padding
    return str(tokenizer.pad_token or ""), min(int(tokenizer.model_max_length), places)


def hub_of(name: str) -> AbstractContextManager[bool]:
    return nullcontext(False) if Path(name).is_dir() else quick_hub()


@contextmanager
def quiet() -> Iterator[None]:
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


def load_error(what: str, error: Exception, kind: str = "sentence-transformers") -> WeightsMissing | BadCheckpoint:
    """Explain why a model of transformers cannot be loaded; `kind` says of what it should be."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
    if isinstance(error, OSError):
        return WeightsMissing(
            f"{what} cannot be had: {reason}; give the folder of a copy (config.json, "
            "model.safetensors, tokenizer.json and what else is there), or a hub id that this machine can reach"
        )
    return BadCheckpoint(f"cannot load {what}: {reason}; give a model of {kind}")


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


def weights_sha256(model: Any) -> str:
    """Hash all weights that embed something, as float32."""
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        if not key.startswith(OF_OTHER_HEADS):
            digest.update(f"{key} {tuple(tensor.shape)}".encode())
            digest.update(tensor.float().contiguous().numpy())
    return digest.hexdigest()


# An exported sentence model without torch: a text tower (`text_tower`) and its prompts.


class SentenceTower:
    """Embeds texts as the sentence model does that was exported. Several threads may use one at once."""

    def __init__(self, tower: TextTower) -> None:
        self._tower = tower
        self.facts = ModelFacts.of(tower.fingerprint)

    @classmethod
    def open(cls, folder: Path) -> SentenceTower:
        """Open the tower of a folder; raises TowersDamaged or BadCheckpoint as `TextTower.open` does."""
        return cls(TextTower.open(folder))

    @property
    def space(self) -> Fingerprint:
        """Identity of the model."""
        return self._tower.fingerprint

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed queries as unit vectors float32 [n, dim]."""
        return self._tower.embed_text([self.facts.query(text) for text in texts])

    def embed_lines(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed lines that are searched as unit vectors float32 [n, dim]."""
        return self._tower.embed_text([self.facts.line(text) for text in texts])
