"""Films into Parquet by Daft, as it is documented: MODEL OUT FPS FILM..."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import av
import daft
import numpy as np

MODEL = sys.argv[1]
DIM = json.loads((Path(MODEL) / "open_clip_config.json").read_text())["model_cfg"]["embed_dim"]


@daft.cls(max_concurrency=1)
class Clip:
    """The model, loaded once."""

    def __init__(self) -> None:
        from kinodex.index.spaces.import_torch import import_open_clip

        self.model, _, self.transform = import_open_clip().create_model_and_transforms(f"local-dir:{MODEL}")
        self.model.eval()

    @daft.method.batch(return_dtype=daft.DataType.embedding(daft.DataType.float32(), DIM), batch_size=32)
    def embed(self, images: Any) -> Any:
        import torch
        from PIL import Image

        pictures = [self.transform(Image.fromarray(np.asarray(each))) for each in images.to_pylist()]
        with torch.inference_mode():
            return self.model.encode_image(torch.stack(pictures), normalize=True).numpy()


def main() -> None:
    """Index the films, one after the other: several paths at once hung."""
    for film in sys.argv[4:]:
        with av.open(film) as container:
            size = container.streams.video[0]
            shape = {"image_height": size.height, "image_width": size.width}
        frames = daft.read_video_frames(film, sample_interval_seconds=1 / float(sys.argv[3]), **shape)
        vector = Clip().embed(daft.col("data")).alias("vector")
        rows = frames.select("path", daft.col("frame_time").alias("time_s"), vector)
        rows.write_parquet(sys.argv[2])
