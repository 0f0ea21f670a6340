"""A model of open_clip with random weights in a folder: as fast as a trained one, and worth nothing in a search."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.errors import UsageError


def make_space(directory: Path, model: str) -> str:
    """Write the model's configuration and weights to a folder; returns the name of the space.

    Raises UsageError if open_clip has no architecture of that name.
    """
    import torch

    from index.embedding.hub import silent_root_logger
    from index.embedding.space import import_open_clip

    open_clip = import_open_clip()
    config = open_clip.get_model_config(model)
    if config is None:
        raise UsageError(f"got --model {model}; open_clip has {', '.join(open_clip.list_models())}")
    from safetensors.torch import save_model

    torch.manual_seed(0)
    with silent_root_logger():  # which warns that the weights are random
        made = open_clip.create_model(model)
    directory.mkdir(parents=True, exist_ok=True)
    said = json.dumps({"model_cfg": config, "preprocess_cfg": made.visual.preprocess_cfg}, indent=2)
    (directory / "open_clip_config.json").write_text(said, encoding="utf-8")
    save_model(made, str(directory / "open_clip_model.safetensors"))
    return f"local-dir:{directory}"
