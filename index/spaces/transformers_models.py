"""Models of transformers: how they are found, loaded without noise, and hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kinodex.index.errors import BadCheckpoint, TorchMissing, WeightsMissing
from kinodex.index.spaces.import_torch import import_torchvision
from kinodex.index.spaces.quick_hub import quick_hub

OF_OTHER_HEADS = ("pooler.", "lm_head.", "cls.")
"""Weights that embed nothing: some checkpoints lack them, and then they are random numbers."""
OF_THE_WRITER = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache")
"""Entries of a `config.json` that the vectors do not depend on."""


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


def weights_sha256(model: Any) -> str:
    """Hash all weights that embed something, as float32."""
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        if not key.startswith(OF_OTHER_HEADS):
            digest.update(f"{key} {tuple(tensor.shape)}".encode())
            digest.update(tensor.float().contiguous().numpy())
    return digest.hexdigest()
