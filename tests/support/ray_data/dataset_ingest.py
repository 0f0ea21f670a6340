"""The work of an ingest as a Ray Data pipeline, by its own means: decode and embed in actor pools, write to Lance.

    python -m tests.support.ray_data.dataset_ingest FOLDER OUT [--workers 2] [--address HOST:PORT] [--retries N]

Decoding, JPEGs, model inputs and the embedding are the functions that kinodex uses; there is no sandbox, no library, no
shots and no failure rows, for Ray Data has nothing in their place. Prints frames and seconds as JSON.

Fragments are written by a third stage and committed at the end by the driver, which is what `Dataset.write_lance` does.
That one itself fails with pylance 14 (Ray 2.60 hands `write_fragments` an argument that it no longer has). With
`--retries` a decoding actor is restarted, and its task retried, so often and no more; any number of blocks may fail.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

BATCH, FPS, JPEG_SIDE_PX, JPEG_QUALITY = 16, 1.0, 512, 85
ROWS_A_FRAGMENT, DIM = 512, 256


class Decode:
    """Actor that decodes the videos of a batch, one by one, and yields 16 frames at a time."""

    def __init__(self, preprocess: str) -> None:
        from kinodex.pipeline.images import ModelInput
        from kinodex.pipeline.sample import SamplingSettings

        self._settings = SamplingSettings(
            FPS, JPEG_SIDE_PX, JPEG_QUALITY, "auto", ModelInput.from_json(preprocess), batch=BATCH
        )

    def __call__(self, videos: dict[str, Any]) -> Iterator[dict[str, Any]]:
        from kinodex.pipeline.fetch import FetchedVideo, Source, content_id
        from kinodex.pipeline.sample import Chunk, ChunkSummary, sample_frames

        for path in map(str, videos["path"]):
            video_id = content_id(Path(path))
            chunk = Chunk(FetchedVideo(Source(path, path), path, video_id, Path(path).stat().st_size))
            with closing(sample_frames(chunk, self._settings)) as parts:
                frames = (part for part in parts if not isinstance(part, ChunkSummary))
                while batch := list(islice(frames, BATCH)):
                    columns: dict[str, list[Any]] = defaultdict(list)
                    for frame in batch:
                        columns["row"].append(f"{video_id}:{frame.number}")
                        columns["time_s"].append(frame.time_s)
                        columns["jpeg"].append(frame.jpeg)
                        columns["input"].append(frame.model_input)
                    yield {**columns, "input": np.stack(columns["input"])}


class Embed:
    """Actor that embeds batches of frames."""

    def __init__(self, space: str) -> None:
        from kinodex.index.spaces.load import load_image_tower

        self._space = load_image_tower(space)

    def __call__(self, frames: dict[str, Any]) -> dict[str, Any]:
        frames["vector"] = self._space.embed(np.asarray(frames.pop("input"), np.uint8)).astype(np.float32)
        return frames


class Write:
    """Actor that writes fragments of Lance and yields them, to be committed."""

    def __init__(self, out: str) -> None:
        self._out = out

    def __call__(self, frames: dict[str, Any]) -> dict[str, Any]:
        from lance.fragment import write_fragments

        fragments = write_fragments(_as_table(frames), self._out, schema=_schema(frames["vector"].shape[1]))
        return {"fragment": [json.dumps(each.to_json()) for each in fragments]}


def _schema(dim: int) -> pa.Schema:
    fields = [("row", pa.string()), ("time_s", pa.float64()), ("jpeg", pa.binary())]
    return pa.schema([*fields, ("vector", pa.list_(pa.float32(), dim))])


def _as_table(frames: dict[str, Any]) -> pa.Table:
    schema = _schema(frames["vector"].shape[1])
    vectors = pa.FixedSizeListArray.from_arrays(frames["vector"].reshape(-1), frames["vector"].shape[1])
    columns = [pa.array(list(frames[name]), schema.field(name).type) for name in ("row", "time_s", "jpeg")]
    return pa.table([*columns, vectors], schema=schema)


def run(folder: Path, out: Path, workers: int, space: str, retries: int | None) -> int:
    """Run the pipeline on the connected cluster; returns the number of frames that Lance holds."""
    import lance
    import ray

    from kinodex.index.spaces.space import load_space

    limits: dict[str, Any] = {}
    if retries is not None:
        limits = {"max_restarts": retries, "max_task_retries": retries}
        ray.data.DataContext.get_current().max_errored_blocks = -1
    preprocess = load_space(space, device="cpu", towers="image").fingerprint.preprocess
    films = sorted(str(path) for path in folder.iterdir())
    videos = ray.data.from_arrow(pa.table({"path": films})).repartition(len(films))
    fragments = (
        videos.map_batches(
            Decode, batch_size=1, concurrency=workers, num_cpus=1, fn_constructor_args=(preprocess,), **limits
        )
        .map_batches(Embed, batch_size=BATCH, concurrency=1, num_cpus=1, fn_constructor_args=(space,))
        .map_batches(Write, batch_size=ROWS_A_FRAGMENT, concurrency=1, num_cpus=1, fn_constructor_args=(str(out),))
    )
    written = [lance.FragmentMetadata.from_json(row["fragment"]) for row in fragments.take_all()]
    operation = lance.LanceOperation.Overwrite(_schema(DIM), written)
    return int(lance.LanceDataset.commit(str(out), operation).count_rows())


def main() -> None:
    import ray

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--address")
    parser.add_argument("--space", default="builtin")
    parser.add_argument("--retries", type=int)
    given = parser.parse_args()
    ray.init(address=given.address or "local", log_to_driver=False, include_dashboard=False)
    began = time.monotonic()
    frames = run(given.folder, given.out, given.workers, given.space, given.retries)
    print(json.dumps({"frames": frames, "seconds": round(time.monotonic() - began, 1)}), flush=True)


if __name__ == "__main__":
    main()
