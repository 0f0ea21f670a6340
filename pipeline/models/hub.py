"""Load the models of the optional stages from a hub id or a local folder, through transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from kinodex.pipeline.errors import ModelMissing, ModelTooLarge, NoSuchDevice, WrongModel, first_line

if TYPE_CHECKING:
    import torch

Kind = Literal["ImageTextToText", "CausalLM", "ObjectDetection", "ZeroShotObjectDetection", "SpeechSeq2Seq"]
"""Tasks as transformers names them: `AutoModelFor<Kind>`."""

NOT_FOR_TASK = "Unrecognized configuration class"
"""Start of transformers' message for a model of another task, which has no error class of its own."""

_torchvision_operators: list[Any] = []  # a torch.library.Library undoes its definitions when it is collected


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in evaluation mode on `device`, with weights of `dtype`, and the processor that makes its input."""

    name: str
    processor: Any
    model: Any
    device: torch.device
    dtype: torch.dtype

    def to_input(self, batch: Any) -> Any:
        return batch.to(self.device, self.dtype)


def load_model(kind: Kind, name: str, device: str = "auto", *, half_on_cuda: bool = True) -> Loaded:
    """Load the model `name` (a hub id or a folder) for one task, on `device` ("auto", "cpu", "cuda", "cuda:1", ...).

    Weights are bf16 on CUDA where the card has it, else fp16, and fp32 everywhere else or without `half_on_cuda`.
    Raises ModelMissing, WrongModel or NoSuchDevice.
    """
    import torch

    transformers = import_transformers()
    name = str(Path(name).expanduser())
    place = chosen_device(device)
    half = half_on_cuda and place.type == "cuda"
    dtype = (torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16) if half else torch.float32
    _check_folder(name)
    with quiet(), _explain_errors(name, kind):
        processor = transformers.AutoProcessor.from_pretrained(name, trust_remote_code=False)
        load = getattr(transformers, f"AutoModelFor{kind}").from_pretrained
        model, loading = load(
            name, dtype=dtype, output_loading_info=True, trust_remote_code=False, use_safetensors=True
        )
    _check_words(name, processor)
    if missing := sorted(loading["missing_keys"]):
        raise WrongModel(
            f"the weights of {name} lack {len(missing)} tensors ({missing[0]}, ...), which would stay at random; "
            f"give a checkpoint that was saved for this task ({kind})"
        )
    with inference():
        return Loaded(name, processor, model.eval().to(place), place, dtype)


def _check_words(name: str, processor: Any) -> None:
    """Raise ModelMissing for a tokenizer without words, which transformers makes up where a model comes without one."""
    tokenizer = getattr(processor, "tokenizer", processor)
    words = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    if words and words.keys() <= set(tokenizer.all_special_tokens):
        raise ModelMissing(
            f"the model {name} comes without the words of its tokenizer; put tokenizer.json (or vocab.json, vocab.txt) "
            "beside its weights"
        )


def reads_pictures(name: str) -> bool:
    """Return True if the model `name` is one for pictures and text, by its config.

    Raises ModelMissing or WrongModel.
    """
    transformers = import_transformers()
    name = str(Path(name).expanduser())
    _check_folder(name)
    with quiet(), _explain_errors(name, "CausalLM"):
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    return type(config) in transformers.AutoModelForImageTextToText._model_mapping


@contextmanager
def inference() -> Iterator[None]:
    """Run a model without gradients in this block; raises ModelTooLarge where the device's memory runs out."""
    import torch

    try:
        with torch.inference_mode():
            yield
    except torch.OutOfMemoryError as error:
        raise ModelTooLarge(
            f"the device's memory is full ({first_line(error)}); lower --batch, or take a smaller model"
        ) from error


def chosen_device(device: str) -> torch.device:
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise NoSuchDevice(f"got device {device!r}, which this machine does not have; use auto or cpu") from error


def import_transformers() -> ModuleType:
    """Import transformers, with a torchvision that was built for CUDA beside a torch that was not, too."""
    _import_torchvision()
    import transformers

    module: ModuleType = transformers
    return module


def _import_torchvision() -> None:
    """Import torchvision if it is installed, and declare its operators where they are missing.

    The torchvision on PyPI is a CUDA build: beside a CPU-only torch its compiled operators do not load, and importing
    it fails with "operator torchvision::nms does not exist". transformers uses its transforms and none of its
    operators, so declaring two of them without a body is enough for the import to succeed.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except ImportError:
        return  # transformers does without
    except RuntimeError:
        if hasattr(torch.ops.torchvision, "nms"):
            raise
        operators: Any = torch.library
        library = operators.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _torchvision_operators.append(library)


def _check_folder(name: str) -> None:
    """Check that a name that looks like a path is one: transformers would request it from the hub."""
    folder = Path(name)
    looks_local = name.startswith((".", "/")) or name.count("/") > 1
    if looks_local and not folder.is_dir():
        raise ModelMissing(
            f"got model {name}, where there is no folder; give a folder that holds config.json or a hub id"
        )
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelMissing(f"got model {name}, a folder without config.json; give what save_pretrained wrote")


@contextmanager
def quiet() -> Iterator[None]:
    logging = import_transformers().utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _explain_errors(name: str, kind: Kind) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ModelMissing(f"{name} needs a package that is missing: {first_line(error)}; install it") from error
    except OSError as error:
        raise ModelMissing(
            f"cannot get the model {name}: {first_line(error)}; give a hub id that exists while the hub can be "
            f"reached, or a local folder with config, weights and processor"
        ) from error
    except Exception as error:  # the errors of loaders for foreign or damaged files cannot be listed
        reason = f"it is no model for AutoModelFor{kind}" if NOT_FOR_TASK in str(error) else first_line(error)
        raise WrongModel(f"cannot use {name}{_architecture(name)}: {reason}; give a model for that task") from error


def _architecture(name: str) -> str:
    try:
        config = json.loads((Path(name) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    names = config.get("architectures") or [config.get("model_type", "")]
    return f" ({names[0]})" if names[0] else ""
