"""An open_clip model of random weights in a folder, small enough that tests write their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "embed_dim": 48,
    "vision_cfg": {"image_size": 64, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
}
"""The configuration of a CLIP model, as open_clip writes it."""


def write_model(folder: Path, config: dict[str, Any], preprocess: dict[str, Any] | None = None, seed: int = 0) -> str:
    """Write an open_clip folder of random weights; returns its name as a space."""
    import torch
    from safetensors.torch import save_file

    from kinodex.index.spaces.import_torch import import_open_clip

    folder.mkdir(parents=True, exist_ok=True)
    facts = {"model_cfg": config, "preprocess_cfg": preprocess or {}}
    (folder / "open_clip_config.json").write_text(json.dumps(facts))
    torch.manual_seed(seed)
    model = import_open_clip().model.CLIP(**json.loads(json.dumps(config)))
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    return f"local-dir:{folder}"
