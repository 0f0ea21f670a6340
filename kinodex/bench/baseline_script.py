"""The script that people write to embed a video, to compare an ingest with: decord and open_clip, nothing stored."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def reason_missing() -> str | None:
    """Give the reason why the plain script cannot run here, if there is one."""
    return None if importlib.util.find_spec("decord") else "decord is not installed; pip install decord"


def run_plain_script(paths: Sequence[Path], space: str, device: str, fps: float, batch: int) -> tuple[int, float]:
    """Embed the videos; returns the number of frames and the seconds spent, with the model loaded.

    In fp32, as open_clip loads a model, with open_clip's own preprocessing of the full picture, and with as many
    threads as its libraries take by themselves. Run it in a fresh process.
    """
    import torch

    from kinodex.pipeline.decoding.others import plain_frames

    model, preprocess = _load(space, device)
    from PIL import Image

    count = 0
    began = time.perf_counter()
    with torch.inference_mode():
        for path in paths:
            for frames in plain_frames(path, fps, batch):
                images = torch.stack([preprocess(Image.fromarray(frame)) for frame in frames])
                features = torch.nn.functional.normalize(model.encode_image(images.to(device)), dim=-1)
                count += len(features.cpu().numpy())
    return count, time.perf_counter() - began


def _load(space: str, device: str) -> tuple[Any, Any]:
    """Load the model and its preprocessing as open_clip does by name."""
    from kinodex.index.spaces.model_source import model_name
    from kinodex.index.spaces.space import import_open_clip

    open_clip = import_open_clip()
    named = model_name(open_clip, space)
    model = open_clip.create_model(
        named.model,
        pretrained=named.pretrained,
        force_quick_gelu=named.quick_gelu,
        force_preprocess_cfg=dict(named.preprocess),
        device=device,
    )
    settings = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
    return model.eval(), open_clip.transform.image_transform_v2(settings, is_train=False)
