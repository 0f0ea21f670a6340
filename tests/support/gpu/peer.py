"""Films into vectors on a GPU as a competent person writes it, to compare an ingest with; no pictures are kept.

python -m tests.support.gpu.peer films FOLDER COUNT                     draw films of five minutes
python -m tests.support.gpu.peer lengths FOLDER                         draw a clip of 1 s, one of 20 s and such a film
python -m tests.support.gpu.peer torchcodec|pyav SPACE OUT THREADS FILM...   a frame a second into a Lance table
python -m tests.support.gpu.peer alone FILM...                          NVDEC by torchcodec, and nothing else
"""

from __future__ import annotations

import itertools
import json
import queue
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BATCH = 64


def draw(folder: Path, count: int) -> None:
    """Draw one film of five minutes, and copies of it that are other bytes."""
    from tests.bench.gpu import draw_film, number_copies

    folder.mkdir()
    draw_film(folder / "film.mp4", 20, 15)
    number_copies([folder / "film.mp4"], folder, count)


def draw_lengths(folder: Path) -> None:
    """Draw a clip of a second, one of 20 s, and a film of five minutes that repeats it."""
    from kinodex.pipeline.video_writer import repeat_video
    from tests.bench.gpu import draw_film

    folder.mkdir()
    draw_film(folder / "clip-1-s.mp4", 1, 1)
    draw_film(folder / "clip-20-s.mp4", 20, 1)
    repeat_video(folder / "clip-20-s.mp4", folder / "film-5-min.mp4", 15)


def from_pyav(path: Path, transform: Any) -> Iterator[tuple[list[float], Any]]:
    """Decode on the host, prepare by open_clip's transform."""
    import av
    import torch

    def frames() -> Iterator[tuple[float, Any]]:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            wanted = 0
            for frame in container.decode(stream):
                if frame.time >= wanted - 1e-6:
                    yield frame.time, transform(frame.to_image())
                    wanted = int(frame.time + 1e-6) + 1

    sampled = frames()
    while batch := list(itertools.islice(sampled, BATCH)):
        yield [time_s for time_s, _ in batch], torch.stack([each for _, each in batch]).to("cuda", torch.bfloat16)


def from_torchcodec(path: Path, visual: Any) -> Iterator[tuple[list[float], Any]]:
    """Decode by NVDEC, scale and normalise on the GPU."""
    import torch
    from torchcodec.decoders import VideoDecoder

    mean, std = (torch.tensor(each, device="cuda").view(1, 3, 1, 1) for each in (visual.image_mean, visual.image_std))
    decoder = VideoDecoder(str(path), device="cuda", seek_mode="approximate")
    end_s = int(decoder.metadata.duration_seconds or 0)
    for first in range(0, end_s, BATCH):
        frames = decoder.get_frames_played_at([float(each) for each in range(first, min(first + BATCH, end_s))])
        size = visual.image_size if isinstance(visual.image_size, tuple) else (visual.image_size,) * 2
        scaled = torch.nn.functional.interpolate(frames.data.float(), size, mode="bicubic", antialias=True)
        yield frames.pts_seconds.tolist(), ((scaled.clamp(0, 255) / 255 - mean) / std).to(torch.bfloat16)


def index(how: str, space: str, out: str, threads: int, films: list[Path]) -> None:
    """Index the films; prints frames a second with the model loaded, and the seconds of the whole process."""
    began = time.perf_counter()
    import lance
    import open_clip
    import pyarrow as pa
    import torch

    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{space}")
    model = model.eval().to("cuda", torch.bfloat16)
    torch.cuda.synchronize()
    loaded = time.perf_counter()
    left: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for film in films:
        left.put(film)
    todo: queue.Queue[tuple[str, list[float], Any] | None] = queue.Queue(maxsize=8)

    def produce() -> None:
        while not left.empty():
            film = left.get()
            read = from_pyav(film, transform) if how == "pyav" else from_torchcodec(film, model.visual)
            for times_s, batch in read:
                todo.put((film.name, times_s, batch))
        todo.put(None)

    for _ in range(threads):
        threading.Thread(target=produce, daemon=True).start()
    ended = count = 0
    with torch.inference_mode():
        while ended < threads:
            if (item := todo.get()) is None:
                ended += 1
                continue
            name, times_s, batch = item
            vectors = model.encode_image(batch, normalize=True).float().cpu().numpy()
            column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            rows = pa.table({"video": [name] * len(times_s), "time_s": times_s, "vector": column})
            lance.write_dataset(rows, out, mode="append")
            count += len(times_s)
    end = time.perf_counter()
    figures = {"how": how, "producers": threads, "frames": count, "load_s": round(loaded - began, 2)}
    figures |= {"work_s": round(end - loaded, 2), "frames_a_s": round(count / (end - loaded), 1)}
    print(json.dumps({**figures, "whole_s": round(end - began, 2)}), flush=True)


def alone(films: list[Path], frames: int = 96) -> None:
    """Decode a frame a second by NVDEC in 1, 4, 8 and 16 threads; prints frames a second."""
    import torch
    from torchcodec.decoders import VideoDecoder, set_nvdec_cache_capacity

    def one(film: Path, batch: int = 16) -> None:
        decoder = VideoDecoder(str(film), device="cuda", num_ffmpeg_threads=1)
        for first in range(0, frames, batch):
            decoder.get_frames_at([24 * each for each in range(first, first + batch)])

    set_nvdec_cache_capacity(0)
    one(films[0])
    print("threads: frames/s")
    for threads in (1, 4, 8, 16):
        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, itertools.islice(itertools.cycle(films), threads)))
        torch.cuda.synchronize()
        print(threads, round(frames * threads / (time.perf_counter() - began), 1), flush=True)


if __name__ == "__main__":
    how, *rest = sys.argv[1:]
    if how == "films":
        draw(Path(rest[0]), int(rest[1]))
    elif how == "lengths":
        draw_lengths(Path(rest[0]))
    elif how == "alone":
        alone([Path(each) for each in rest])
    else:
        index(how, rest[0], rest[1], int(rest[2]), [Path(each) for each in rest[3:]])
