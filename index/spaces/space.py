"""Embedding spaces: the one place that knows an open_clip model by name.

A space is a model, its weights and its preprocessing. `load_space` makes one from a name:

- ``builtin``: the project's own small model, which knows only the sketch world;
- ``ViT-B-32/laion2b_s34b_b79k``: an architecture and pretrained tag of `open_clip.list_pretrained()`;
- ``hf-hub:org/model``: an open_clip model on the hub;
- ``local-dir:PATH``: a folder with open_clip_config.json, the weights, and the tokenizer if it needs one;
- ``ViT-B-32/PATH.safetensors``: an architecture with a local checkpoint.

What is no model of open_clip's own list is loaded from a copy that holds nothing but data (`checked_copy`).

The default is SigLIP 2 (Tschannen et al. 2025, arXiv 2502.14786; weights Apache-2.0) in its base size with 32-pixel
patches at 256 px, which understands many languages and needs `transformers` for its tokenizer. It finds the right COCO
picture for a caption first in 47.2 % of cases, where ViT-B-32/laion2b_s34b_b79k finds it in 39.3 %, and
ViT-B-16-SigLIP2-256/webli, at four times the patches, in 53.2 %.
"""

from __future__ import annotations

import copy
import hashlib
import json
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, DeviceMissing, WeightsMissing, checked_text
from kinodex.index.spaces.towers import BUILTIN, Fingerprint, SharedSwitch, Sigmoid, sha256_of_json

if TYPE_CHECKING:
    import torch
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory

from kinodex.index.errors import UnknownModel
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
from kinodex.index.spaces.named_models import note_model

# Source of a space's model: its name resolved to the arguments of open_clip, and the hub without its long retries.

DEFAULT_SPACE, BUILTIN_SPACE = "ViT-B-32-SigLIP2-256/webli", "builtin"
HUB, LOCAL = "hf-hub:", "local-dir:"
PROBE_TIMEOUT_S = 5.0
HOW_TO_LIST = "`python -c 'import open_clip; print(open_clip.list_pretrained())'` lists all"


@dataclass(frozen=True, slots=True)
class ModelName:
    """Arguments of `open_clip.create_model`."""

    given: str
    model: str
    """An architecture, or a "hf-hub:" or "local-dir:" name."""
    pretrained: str | None = None
    """A pretrained tag or the path of a checkpoint, for an architecture."""
    tag_settings: Mapping[str, Any] = field(default_factory=dict)
    """open_clip's own settings of the tag; empty for anything but a tag."""
    preprocess: Mapping[str, Any] = field(default_factory=dict)
    """Preprocessing for a bare checkpoint, which the file itself does not describe."""
    config: Mapping[str, Any] | None = None
    """The configuration of a model that is not of open_clip's own list, as it was given."""

    @property
    def hub_id(self) -> str:
        """Name of the model on the hub."""
        return self.model.removeprefix(HUB)

    @property
    def asks_hub(self) -> bool:
        """True if weights or a tokenizer may have to come from the hub."""
        return not self.model.startswith(LOCAL)

    @property
    def quick_gelu(self) -> bool:
        """True if the tag's weights were trained with QuickGELU, which its architecture does not say."""
        return bool(self.tag_settings.get("quick_gelu"))


def absolute_name(name: str) -> str:
    """Make the path in a space's name absolute, if it has one: a library stores it, and may be opened anywhere."""
    kind, separator, path = name.partition(":" if name.startswith(LOCAL) else "/")
    if not name.startswith(LOCAL) and (name.startswith(HUB) or not path.endswith(WEIGHT_SUFFIX)):
        return name
    given = Path(path)
    found = given.expanduser() if given.parts[:1] == ("~",) else given  # of ~nobody it would raise a RuntimeError
    return f"{kind}{separator}{found.absolute()}"


def model_name(open_clip: ModuleType, name: str) -> ModelName:
    """Check the name of a space as far as possible without loading anything."""
    name = absolute_name(name)
    if name == "builtin":
        _check_folder(name, BUILTIN)
        return ModelName(name, f"{LOCAL}{BUILTIN}")
    if name.startswith(LOCAL):
        _check_folder(name, Path(name.removeprefix(LOCAL)))
        return ModelName(name, name)
    if name.startswith(HUB):
        if name.count("/") != 1 or name.endswith("/"):
            raise UnknownModel(f"got space {name!r}; a model on the hub is named hf-hub:ORGANISATION/MODEL")
        return ModelName(name, name)
    return _architecture(open_clip, name)


def _architecture(open_clip: ModuleType, name: str) -> ModelName:
    architecture, _, pretrained = name.partition("/")
    known = open_clip.list_models()
    if architecture not in known:
        pairs = ["/".join(pair) for pair in open_clip.list_pretrained()]
        raise UnknownModel(f"got space {name!r}, which open_clip does not know; {_nearest(name, pairs)}; {HOW_TO_LIST}")
    if settings := open_clip.get_pretrained_cfg(architecture, pretrained):
        return ModelName(name, architecture, pretrained, settings)
    if pretrained.endswith(WEIGHT_SUFFIX) and Path(pretrained).is_file():
        return ModelName(name, architecture, pretrained, preprocess=_usual_preprocess(open_clip, architecture))
    if Path(pretrained).is_file():
        what = "files of other kinds may hold code; convert it by safetensors.torch.save_file"
        raise BadCheckpoint(f"got space {name!r}, whose weights are no {WEIGHT_SUFFIX}: {what}")
    if "/" in pretrained or pretrained.endswith(WEIGHT_SUFFIX):
        what = f"there is no file {pretrained}; give the path of a checkpoint ({WEIGHT_SUFFIX})"
        raise WeightsMissing(f"got space {name!r}, but {what}")
    tags = [f"{architecture}/{tag}" for tag in open_clip.list_pretrained_tags_by_model(architecture)]
    near = _nearest(name, tags) if tags else "it takes a checkpoint's path"
    what = f"{architecture} has no pretrained tag {pretrained!r}"
    raise UnknownModel(f"got space {name!r}, but {what}; {near}; {HOW_TO_LIST}")


def _usual_preprocess(open_clip: ModuleType, architecture: str) -> dict[str, Any]:
    """Find the preprocessing that all pretrained tags of an architecture share; empty if they differ."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    settings = [open_clip.get_pretrained_cfg(architecture, tag) for tag in tags]
    usual = [{key: each[key] for key in keys if key in each} for each in settings]
    return usual[0] if usual and all(each == usual[0] for each in usual) else {}


def _nearest(name: str, known: Sequence[str]) -> str:
    lowered = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lowered, n=3, cutoff=0.0)
    return "the nearest names are " + ", ".join(lowered[each] for each in near)


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        what = "there is no such folder; give one that holds open_clip_config.json and the weights"
        raise WeightsMissing(f"got space {name!r}, but {what}")
    if not (folder / "open_clip_config.json").is_file():
        what = f"{folder} holds no open_clip_config.json; add it beside the weights"
        raise BadCheckpoint(f"got space {name!r}, but {what}")
    if not any(file.suffix == WEIGHT_SUFFIX for file in folder.iterdir()):
        what = f"{folder} holds no weights; add open_clip_model.safetensors"
        raise WeightsMissing(f"got space {name!r}, but {what}")


def _use_cache_only() -> Callable[[], None]:
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    return lambda: setattr(constants, "HF_HUB_OFFLINE", before)


def _drop_open_clip_logs() -> Callable[[], None]:
    """Filter the root logger, and give it a handler: `logging.warning` would install one for the whole program."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def not_open_clip(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    def turn_off() -> None:
        root.removeFilter(not_open_clip)
        root.removeHandler(handler)

    root.addHandler(handler)
    root.addFilter(not_open_clip)
    return turn_off


_cache_only = SharedSwitch(_use_cache_only)
_without_open_clip_logs = SharedSwitch(_drop_open_clip_logs)


@contextmanager
def quick_hub() -> Iterator[bool]:
    """Use the hub's cache alone within this block if the hub is silent; yield True if the hub answers.

    The client retries each file with growing pauses, 46 s for one model without a network; one request settles it.
    """
    from huggingface_hub import constants

    with _cache_only.lock:
        is_held, is_offline = _cache_only.holders > 0, constants.HF_HUB_OFFLINE
    if is_offline and not is_held:  # the user's own setting
        yield False
    elif is_held or not _answers(constants.ENDPOINT):
        with _cache_only.held():
            yield False
    else:
        yield True


@contextmanager
def silent_root_logger() -> Iterator[None]:
    """Drop what open_clip logs within this block: what matters of it becomes an error of ours."""
    with _without_open_clip_logs.held():
        yield


def _answers(url: str) -> bool:
    """True if a server answers in time; one that takes long over its answer, a byte at a time, does not."""
    answers: list[bool] = []
    probe = threading.Thread(target=lambda: answers.append(_replies(url)), name="hub", daemon=True)
    probe.start()
    probe.join(PROBE_TIMEOUT_S)
    return answers == [True]


def _replies(url: str) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_TIMEOUT_S):
            return True
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except OSError:
        return False


TEXT_BATCH = 64
THREE_WAYS = (
    "; give the model as a folder (--space local-dir:PATH, a copy of its repository with its tokenizer), a mirror of "
    "the hub (HF_ENDPOINT=https://...), or the hub's cache of a machine that has it, carried over (HF_HOME=FOLDER)"
)

_torchvision_operators: list[Any] = []  # a torch.library.Library undoes its definitions when it is collected


def import_torchvision() -> None:
    """Import torchvision, also one that was built for CUDA (PyPI's) beside a torch that was not.

    Its compiled operators do not load then, and importing it fails with "operator torchvision::nms does not exist".
    Nothing here detects objects, so declaring its two operators without a body is enough.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        if hasattr(torch.ops.torchvision, "nms"):
            raise
        operators: Any = torch.library
        library = operators.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _torchvision_operators.append(library)


def import_open_clip() -> ModuleType:
    """Import open_clip, after `import_torchvision`."""
    import_torchvision()
    import open_clip

    module: ModuleType = open_clip
    return module


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
        """Compute with so many threads within a block; they are the process's own number, for all spaces."""
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
    if name == "builtin":
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


# Choose the arithmetic that embeds images fastest on this machine without changing the vectors' meaning.

MIN_CPU_SPEEDUP = 1.5
"""On a CPU bf16 must be this much quicker to be taken: it wins 3 to 7 times or loses, so noise does not decide."""
MIN_CUDA_SPEEDUP = 1.1
"""On CUDA another layout or a compiled tower must be this much quicker."""
MIN_COSINE = 0.9995
SMALL_TOWER_PARAMETERS = 20_000_000
"""Towers below this stay in fp32: they are quick anyway, and so give the same vectors on every machine."""
MANY_CONVOLUTIONS = 3
"""A tower with so many convolutions is made of them; a transformer has one, which cuts a picture into patches."""
TRIAL_IMAGES = 4


def quick_tower(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """Return the fp32 `tower`, or a copy in half precision where that is faster here and gives the same vectors.

    On a CPU that depends on the processor: the faster of two runs counts. On CUDA half precision always pays, and the
    layout of convolutions is chosen too. On a CPU a tower of convolutions has its channels last, which is quicker.
    """
    import torch

    on_cuda, convolutions = images.is_cuda, sum(isinstance(each, torch.nn.Conv2d) for each in tower.modules())
    if images.device.type == "cpu" and convolutions >= MANY_CONVOLUTIONS:
        last: Any = tower  # its weights are laid out otherwise in place, so that none is held twice
        tower = last.to(memory_format=torch.channels_last)
    if sum(parameter.numel() for parameter in tower.parameters()) < SMALL_TOWER_PARAMETERS:
        return tower
    if not on_cuda and (images.device.type != "cpu" or not computes_bf16()):
        return tower
    half = torch.float16 if on_cuda and not torch.cuda.is_bf16_supported() else torch.bfloat16
    trial = images[:TRIAL_IMAGES]
    low = copy.deepcopy(tower).to(half)
    full_s, full = _timed(tower, trial)
    low_s, rounded = _timed(low, trial)
    cosine = torch.nn.functional.cosine_similarity(full, rounded.float(), dim=-1).min()
    if cosine < MIN_COSINE or not (on_cuda or full_s > MIN_CPU_SPEEDUP * low_s):
        return tower
    return _in_quicker_layout(low, images) if on_cuda else low


def computes_bf16() -> bool:
    """True if the processor may have instructions for bfloat16; without them it was never quicker."""
    flags = processor_facts()[1]
    return not flags or bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def processor_facts() -> tuple[str, frozenset[str]]:
    """Read the processor's name and its flags; where Linux does not say them, what Python knows, and no flags."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = frozenset((facts.get("flags") or facts.get("Features") or "").split())
    return facts.get("model name") or platform.processor() or platform.machine(), flags


def features_of(tower: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Compute the features of `images` by an open_clip image tower, in the tower's own number format."""
    features = tower(images.to(next(tower.parameters(), images).dtype))
    pooled: torch.Tensor = features[0] if isinstance(features, tuple) else features  # CoCa also gives its tokens
    return pooled


def arithmetic_of(tower: torch.nn.Module) -> str:
    """Describe the arithmetic of a tower: number format, layout if it is not the usual one, version of torch."""
    import torch

    weights = list(tower.parameters())
    format_name = str(next(iter(weights), torch.empty(0)).dtype).removeprefix("torch.")
    is_last = any(each.dim() == 4 and not each.is_contiguous() for each in weights)
    layout = ["channels_last"] if is_last else []
    return ", ".join([format_name, *layout, f"torch {torch.__version__}"])


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Compute with so many threads of torch within this block; they are the process's own number, for all models."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _in_quicker_layout(tower: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    import torch

    channels_last: Any = copy.deepcopy(tower)
    channels_last.to(memory_format=torch.channels_last)
    plain_s, _ = _timed(tower, images)
    last_s, _ = _timed(channels_last, images)
    quickest: torch.nn.Module = channels_last if plain_s > MIN_CUDA_SPEEDUP * last_s else tower
    return quickest


def _timed(tower: torch.nn.Module, images: torch.Tensor) -> tuple[float, torch.Tensor]:
    import torch

    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        features = features_of(tower, images)
        if images.is_cuda:
            torch.cuda.synchronize(images.device)
        seconds.append(time.perf_counter() - began)
    return min(seconds), features
