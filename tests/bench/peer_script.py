"""Films into vectors on a CPU, as a competent person writes it in an afternoon: MODEL OUT FPS FILM...

PyAV decodes in its own threads; a producer prepares pictures while the model embeds batches of 32; rows go into a Lance
table. No pictures are kept, nothing is resumed, and a broken film ends it.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import lance
import pyarrow as pa
import torch

from kinodex.index.spaces.import_torch import import_open_clip

BATCH = 32


def sampled(film: Path, fps: float) -> Iterator[tuple[float, Any]]:
    """Yield the first frame of each 1 / fps seconds, as a PIL picture."""
    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        due_s = 0.0
        for frame in container.decode(stream):
            if frame.time is not None and frame.time >= due_s - 1e-6:
                yield frame.time, frame.to_image()
                due_s = (int(frame.time * fps + 1e-6) + 1) / fps


def main() -> None:
    """Index the films."""
    model_folder, out, fps = sys.argv[1], sys.argv[2], float(sys.argv[3])
    films = [Path(each) for each in sys.argv[4:]]
    model, _, transform = import_open_clip().create_model_and_transforms(f"local-dir:{model_folder}")
    model.eval()
    ready: queue.Queue[tuple[str, float, Any] | None] = queue.Queue(4 * BATCH)

    def produce() -> None:
        for film in films:
            for time_s, picture in sampled(film, fps):
                ready.put((film.name, time_s, transform(picture)))
        ready.put(None)

    threading.Thread(target=produce, daemon=True).start()
    item = ready.get()
    while item is not None:
        batch = []
        while item is not None and len(batch) < BATCH:
            batch.append(item)
            item = ready.get()
        with torch.inference_mode():
            vectors = model.encode_image(torch.stack([picture for _, _, picture in batch]), normalize=True)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.numpy().ravel()), vectors.shape[1])
        rows = {"video": [name for name, _, _ in batch], "time_s": [time_s for _, time_s, _ in batch]}
        lance.write_dataset(pa.table(rows | {"vector": column}), out, mode="append")
