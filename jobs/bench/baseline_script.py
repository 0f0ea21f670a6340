"""The script that people write to embed a video: decord and open_clip, nothing stored. What an ingest is held to."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def why_no_plain() -> str | None:
    """Why the plain script cannot run here, if so."""
    return None if importlib.util.find_spec("decord") else "decord is not installed; pip install decord"


def plain_script(paths: Sequence[Path], space: str, device: str, fps: float, batch: int) -> tuple[int, float]:
    """How many frames it embeds and the seconds that takes, with the model loaded.

    In fp32, as open_clip loads a model, with open_clip's own preprocessing of the full picture, and with as many
    threads as its libraries take by themselves. Run it in a fresh process.
    """
    import torch

    from pipeline.decoding.decord_backend import plain_frames

    model, preprocess = _loaded(space, device)
    from PIL import Image

    frames = 0
    began = time.perf_counter()
    with torch.inference_mode():
        for path in paths:
            for pictures in plain_frames(path, fps, batch):
                images = torch.stack([preprocess(Image.fromarray(picture)) for picture in pictures])
                features = torch.nn.functional.normalize(model.encode_image(images.to(device)), dim=-1)
                frames += len(features.cpu().numpy())
    return frames, time.perf_counter() - began


def _loaded(space: str, device: str) -> tuple[Any, Any]:
    """The model and its preprocessing, as open_clip makes them of its name."""
    from index.embedding.names import model_name
    from index.embedding.space import import_open_clip

    open_clip = import_open_clip()
    wanted = model_name(open_clip, space)
    model = open_clip.create_model(
        wanted.model,
        pretrained=wanted.pretrained,
        force_quick_gelu=wanted.quick_gelu,
        force_preprocess_cfg=dict(wanted.preprocess),
        device=device,
    )
    settings = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
    return model.eval(), open_clip.transform.image_transform_v2(settings, is_train=False)
