"""Embedding spaces: the one place that knows an open_clip model by name.

A space is a model, its weights and its preprocessing. `load_space` makes one from a name:

- ``ViT-B-32/laion2b_s34b_b79k``: an architecture and pretrained tag of `open_clip.list_pretrained()`;
- ``hf-hub:org/model``: an open_clip model on the hub;
- ``local-dir:PATH``: a folder with open_clip_config.json, the weights, and the tokenizer if it needs one;
- ``ViT-B-32/PATH.safetensors``: an architecture with a local checkpoint.

What is exported, as ``photo`` and ``towers:FOLDER``, is no model of open_clip's: see `load`.

What is no model of open_clip's own list is loaded from a copy that holds nothing but data (`checked_copy`).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, DeviceMissing, WeightsMissing
from kinodex.index.spaces.arithmetic import arithmetic_of, features_of, quick_tower, torch_threads
from kinodex.index.spaces.checked_copy import (
    CONFIG,
    WEIGHT_NAMES,
    WEIGHT_SUFFIX,
    copy_config,
    copy_tokenizer,
    in_folder,
    in_hub,
    link_weights,
)
from kinodex.index.spaces.fingerprint import Fingerprint, sha256_of_json
from kinodex.index.spaces.import_torch import import_open_clip, silent_root_logger
from kinodex.index.spaces.model_names import HUB, LOCAL, ModelName, absolute_name, exported_folder, model_name
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.quick_hub import quick_hub
from kinodex.index.spaces.towers import Sigmoid
from kinodex.index.utf8 import checked_text

if TYPE_CHECKING:
    import torch


TEXT_BATCH = 64
THREE_WAYS = (
    "; give the model as a folder (--space local-dir:PATH, a copy of its repository with its tokenizer), a mirror of "
    "the hub (HF_ENDPOINT=https://...), or the hub's cache of a machine that has it, carried over (HF_HOME=FOLDER)"
)


class Space:
    """A loaded space, which embeds pictures, texts or both as unit vectors of `dim` numbers."""

    def __init__(
        self,
        fingerprint: Fingerprint,
        model: torch.nn.Module,
        transform: Any,
        tokenizer: Any,
        device: torch.device,
        files: Sequence[Path] = (),
    ) -> None:
        self.fingerprint = fingerprint
        self.files = files
        """Those that say what the name stands for."""
        self.note = ""
        """Why torch embeds its pictures; said with the arithmetic."""
        self.name = fingerprint.name
        self.dim = fingerprint.dim
        self._model: Any = model
        self._transform = transform
        self._tokenizer = tokenizer
        self._device = device
        self._is_settled = False
        self._tower_lock = threading.Lock()

    @property
    def device_type(self) -> str:
        """Kind of device: "cpu", "cuda" or another that torch knows."""
        return self._device.type

    @property
    def arithmetic(self) -> str:
        """Arithmetic that makes the vectors of pictures; empty before the first batch, which chooses it."""
        if not self._is_settled:
            return ""
        return "; ".join(filter(None, [arithmetic_of(self._model.visual), self.note]))

    def threads(self, count: int) -> AbstractContextManager[None]:
        """Compute with this many threads within a block; they are the process's own number, for all spaces."""
        return torch_threads(count)

    def text_parts(self) -> tuple[Any, Any]:
        """Return the open_clip model and its tokenizer, for the text tower to be exported."""
        return self._model, self._tokenizer

    @property
    def sigmoid(self) -> Sigmoid | None:
        """The scale and bias of a space that was trained by a sigmoid loss; None of one trained by a softmax."""
        bias = getattr(self._model, "logit_bias", None)
        return None if bias is None else Sigmoid(self._model.logit_scale.exp().item(), bias.item())

    def image_parts(self) -> tuple[torch.nn.Module, Sequence[float], Sequence[float]]:
        """Return the image tower in its present arithmetic, and mean and deviation of its pixels from 0 to 1."""
        normalize = self._transform.transforms[-1]
        return self._model.visual, normalize.mean, normalize.std

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the model's input [3, h, w] of one picture [H, W, 3] by open_clip's own transform; not normalised."""
        from PIL import Image

        picture = Image.fromarray(rgb)
        for step in self._transform.transforms[:-2]:  # the last two are ToTensor and Normalize
            picture = step(picture)
        return np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))

    def embed(self, batch: NDArray[np.uint8] | torch.Tensor) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]; several threads may call it."""
        import torch

        if not len(batch):
            return np.empty((0, self.dim), np.float16)
        with torch.inference_mode():
            images = self._normalised(batch)
            features = features_of(self._chosen_tower(images), images)
            vectors: NDArray[np.float16] = unit(features).half().cpu().numpy()
        return vectors

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim]; always in fp32, for a query is only a text or two."""
        import torch

        batches = [np.empty((0, self.dim), np.float32)]
        with torch.inference_mode():
            for first in range(0, len(texts), TEXT_BATCH):
                some = [checked_text(text) for text in texts[first : first + TEXT_BATCH]]
                tokens = self._tokenizer(some).to(self._device)
                batches.append(unit(self._model.encode_text(tokens)).cpu().numpy())
        return np.concatenate(batches)

    def _normalised(self, batch: NDArray[np.uint8] | torch.Tensor) -> torch.Tensor:
        """Apply ToTensor and Normalize to pictures on this space's device, to which they are sent as bytes."""
        import torch

        if not isinstance(batch, torch.Tensor):
            batch = torch.from_numpy(
                np.require(batch, requirements="W")
            )  # torch warns about memory that others may hold
        images = batch.to(self._device).float().div_(255)
        normalize = self._transform.transforms[-1]
        mean, std = (torch.tensor(each, device=self._device).view(3, 1, 1) for each in (normalize.mean, normalize.std))
        return images.sub_(mean).div_(std)

    def _chosen_tower(self, images: torch.Tensor) -> torch.nn.Module:
        """Return the image tower in the arithmetic that was chosen at this space's first batch."""
        with self._tower_lock:
            if not self._is_settled:
                self._model.visual = quick_tower(self._model.visual, images)  # the fp32 original, if it was left, goes
                self._is_settled = True
            tower: torch.nn.Module = self._model.visual
        return tower


DRAWN = ("uniform_", "normal_", "trunc_normal_")
"""Calls of torch that fill a tensor, their first argument, by chance."""


def load_space(name: str, *, device: str = "auto", towers: Literal["both", "text", "image"] = "both") -> Space:
    """Load the space called `name` (see the top of this file) on `device` ("auto", "cpu", "cuda", "cuda:1", ...).

    With `towers` "text" or "image" only that half of the model stays in memory. Raises UnknownModel, WeightsMissing,
    BadCheckpoint or DeviceMissing.
    """
    open_clip = import_open_clip()
    named = model_name(open_clip, name)
    place = chosen_device(device)
    with quick_hub() if named.asks_hub else nullcontext(True) as online, silent_root_logger():
        files = _model_files(open_clip, named, online)
        with _as_data(open_clip, named, online, with_tokenizer=towers != "image") as plain:
            model = _load_model(open_clip, plain)
            tokenizer = None if towers == "image" else _load_tokenizer(open_clip, plain, online)
            fingerprint = _fingerprint(open_clip, plain, model)
    note_model(named.given)
    settings = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
    transform = open_clip.transform.image_transform_v2(settings, is_train=False)
    _drop_tower(model, towers)
    return Space(fingerprint, model.eval().to(place), transform, tokenizer, place, files)


def fetch_tokenizer(name: str) -> None:
    """Fetch the tokenizer of the space called `name` into the hub's cache, for texts to be embedded later, offline."""
    if exported_folder(name) is not None:
        return
    open_clip = import_open_clip()
    named = model_name(open_clip, name)
    if named.asks_hub:
        with (
            quick_hub() as online,
            silent_root_logger(),
            _as_data(open_clip, named, online, with_weights=False) as plain,
        ):
            _load_tokenizer(open_clip, plain, online, way_on="")


@contextmanager
def _as_data(
    open_clip: ModuleType, named: ModelName, online: bool, *, with_weights: bool = True, with_tokenizer: bool = True
) -> Iterator[ModelName]:
    """Give a model that is not of open_clip's own list as a folder for this block that holds nothing but data."""
    if not named.model.startswith((HUB, LOCAL)):
        yield named
        return
    is_local = named.model.startswith(LOCAL)
    find = in_folder(Path(named.model.removeprefix(LOCAL))) if is_local else in_hub(named.hub_id)
    with TemporaryDirectory(prefix="kinodex-model-") as folder:
        what = "weights"
        try:
            config = copy_config(open_clip, named.given, find, Path(folder))
            if with_weights:
                link_weights(named.given, find, Path(folder))
            what = "tokenizer"
            tokenizer = config.get("text_cfg", {}).get("hf_tokenizer_name")
            if tokenizer and with_tokenizer:
                copy_tokenizer(named.given, find if is_local else in_hub(str(tokenizer)), Path(folder))
        except (OSError, WeightsMissing) as error:
            if is_local:
                raise
            raise _missing(what, named, error, online) from error
        yield replace(named, model=f"{LOCAL}{folder}", config=config)


def chosen_device(device: str) -> torch.device:
    """Return the device of that name, "auto" being CUDA, else MPS, where there is one; raises DeviceMissing."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise DeviceMissing(f"got device {device!r}, which this machine does not have; use auto or cpu") from error


def _model_files(open_clip: ModuleType, named: ModelName, online: bool) -> list[Path]:
    """List the files of a model; the hub's are fetched into its cache, so that later errors are not the network's."""
    try:
        if named.tag_settings:
            return [Path(open_clip.download_pretrained(named.tag_settings))]
        if named.model.startswith(HUB):
            return [*filter(None, map(in_hub(named.hub_id), (CONFIG, *WEIGHT_NAMES)))]
    except (OSError, RuntimeError) as error:
        raise _missing("weights", named, error, online) from error
    return local_files(named.given)


def local_files(name: str) -> list[Path]:
    """List the files of a model that a name gives by its path; none for one of the hub."""
    name = absolute_name(name)
    if not name.startswith(LOCAL):
        path = Path(name.partition("/")[2])
        return [path] if path.suffix == WEIGHT_SUFFIX and path.is_file() else []
    folder = Path(name.removeprefix(LOCAL))
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [file for file in files if file.suffix in (WEIGHT_SUFFIX, ".json")]


def _load_model(open_clip: ModuleType, named: ModelName) -> Any:
    try:
        with _weights_left_as_they_are():
            return open_clip.create_model(
                named.model,
                pretrained=named.pretrained,
                require_pretrained=True,
                force_quick_gelu=named.quick_gelu,
                force_preprocess_cfg=dict(named.preprocess),
                device="cpu",
            )
    except Exception as error:  # loaders raise anything on a damaged or foreign file
        way_on = "give a checkpoint that open_clip wrote for this model"
        reason = _first_line(error).replace(named.model, named.given)
        raise BadCheckpoint(f"cannot load {named.given}: {reason}; {way_on}") from error


def _weights_left_as_they_are() -> AbstractContextManager[Any]:
    """Draw no random numbers within the block: a checkpoint has every weight, and for ViT-B-32 that takes 1.3 CPU s."""
    from torch.overrides import TorchFunctionMode

    class Undrawn(TorchFunctionMode):
        def __torch_function__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            if call.__name__ in DRAWN:
                return args[0] if args else given["tensor"]
            return call(*args, **given)

    return Undrawn()


def _load_tokenizer(open_clip: ModuleType, named: ModelName, online: bool, way_on: str = THREE_WAYS) -> Any:
    try:
        return open_clip.get_tokenizer(named.model)
    except ImportError as error:
        raise WeightsMissing(
            f"the tokenizer of {named.given} needs transformers, which is not installed; install kinodex[hf]"
        ) from error
    except (OSError, ValueError) as error:
        raise _missing("tokenizer", named, error, online, way_on) from error


def _missing(what: str, named: ModelName, error: Exception, online: bool, way_on: str = THREE_WAYS) -> WeightsMissing:
    reason = _first_line(error) if online else "the hub does not answer and its cache here lacks it"
    return WeightsMissing(f"the {what} of {named.given} cannot be had: {reason}{way_on}")


def _fingerprint(open_clip: ModuleType, named: ModelName, model: Any) -> Fingerprint:
    config = dict(open_clip.get_model_config(named.model) if named.config is None else named.config)
    if named.quick_gelu:
        config["quick_gelu"] = True
    preprocess = json.dumps(model.visual.preprocess_cfg, sort_keys=True)
    return Fingerprint(
        named.given, sha256_of_json(config)[:12], _weights_sha256(model), preprocess, config["embed_dim"]
    )


def _weights_sha256(model: Any) -> str:
    """Hash all weights as loaded, so .pt and .safetensors agree; 1.7 GB a second."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().numpy())
    return digest.hexdigest()


def _drop_tower(model: Any, towers: str) -> None:
    """Delete the modules of the tower that is not needed."""
    halves = {"text": ("visual",), "image": ("text", "transformer", "token_embedding", "text_decoder")}
    for module in halves.get(towers, ()):
        if hasattr(model, module):
            delattr(model, module)


def unit(features: torch.Tensor) -> torch.Tensor:
    """Scale features `[n, dim]` to float32 of unit length."""
    import torch

    return torch.nn.functional.normalize(features.float(), dim=-1)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
