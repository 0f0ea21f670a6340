"""Films into Pixeltable with an embedding index, as it is documented: MODEL OUT FPS FILM..."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import PIL.Image
import pixeltable as pxt
from pixeltable.func import Batch

MODEL = sys.argv[1]
DIM = json.loads((Path(MODEL) / "open_clip_config.json").read_text())["model_cfg"]["embed_dim"]


@functools.cache
def loaded() -> tuple[Any, Any, Any]:
    """Load the model, its transform and its tokenizer."""
    from kinodex.index.spaces.import_torch import import_open_clip

    open_clip = import_open_clip()
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{MODEL}")
    return model.eval(), transform, open_clip.get_tokenizer(f"local-dir:{MODEL}")


@pxt.udf(batch_size=32)
def embed_image(image: Batch[PIL.Image.Image]) -> Batch[pxt.Array[(DIM,), pxt.Float]]:
    import torch

    model, transform, _ = loaded()
    with torch.inference_mode():
        return list(model.encode_image(torch.stack([transform(each) for each in image]), normalize=True).numpy())


def main() -> None:
    """Index the films."""
    from pixeltable.functions.video import frame_iterator

    films = pxt.create_table("films", {"video": pxt.Video})
    frames = pxt.create_view("frames", films, iterator=frame_iterator(films.video, fps=float(sys.argv[3])))
    frames.add_embedding_index("frame", image_embed=embed_image, precision="fp32")
    films.insert([{"video": film} for film in sys.argv[4:]])
