"""Batches of tensors: every frame once an epoch, over ranks and spawned workers; the same seed, the same order."""

from __future__ import annotations

import io
import multiprocessing
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.index.datasets.columns import stored_names
from kinodex.index.datasets.plan import plan_frames
from kinodex.index.datasets.shares import Batching
from kinodex.index.errors import LibraryError, QueryError
from kinodex.index.library import Library
from tests.index.conftest import ALL
from tests.support.late import late
from tests.support.libraries.random_library import made

torch, torch_frames = late("torch"), late("kinodex.index.torch_frames")
KEY = ("video_id", "frame_no")


def dataset(library: Library, size: int = 32, columns: tuple[str, ...] = KEY, piece_rows: int = 16, **options: Any):
    even, drop_last = options.pop("even", False), options.pop("drop_last", False)
    plan = plan_frames(library, stored_names(columns), piece_rows=piece_rows)
    return torch_frames.FrameBatches(plan, columns, Batching(size, drop_last, even), buffer_rows=100, **options)


def keys(batches: Any) -> list[tuple[str, int]]:
    """Video and number of each frame, in the order in which they came."""
    return [
        (video_id, number)
        for batch in batches
        for video_id, number in zip(batch["video_id"], batch["frame_no"].tolist(), strict=True)
    ]


@pytest.mark.slow
def test_every_frame_comes_once_an_epoch_in_an_order_of_its_own(patchy: Library) -> None:
    frames = dataset(patchy)
    first, again = keys(frames), keys(frames)
    frames.set_epoch(1)
    second = keys(frames)
    assert sorted(first) == sorted(second) == ALL
    assert first == again != second
    assert keys(dataset(patchy, seed=1)) != first
    assert len({number // 16 for _, number in first[:32]}) > 4, "a batch mixes pieces"
    stored = keys(dataset(patchy, seed=None))
    assert sorted(stored) == ALL and stored[:9] == ALL[:9]
    assert [number for video_id, number in stored if video_id == "dddd"] == list(range(700))


@pytest.mark.slow
def test_spawned_workers_share_them_too_and_hear_of_the_next_epoch(patchy: Library) -> None:
    frames = dataset(patchy)
    loader = frames.loader(num_workers=2)
    batches = list(loader)
    assert len(batches) == frames.batches(num_workers=2)
    frames.set_epoch(1)
    first, second = keys(batches), keys(loader)
    assert sorted(first) == sorted(second) == ALL
    assert first != second
    del loader


def first_batch_or_error(frames: Any, sent: Any) -> None:
    try:
        sent.put(len(next(iter(frames))))
    except LibraryError as error:
        sent.put(str(error))


@pytest.mark.filterwarnings("ignore:lance is not fork-safe:UserWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_is_refused_with_the_remedy(patchy: Library) -> None:
    context = multiprocessing.get_context("fork")
    sent = context.SimpleQueue()
    worker = context.Process(target=first_batch_or_error, args=(dataset(patchy), sent))
    worker.start()
    assert "a worker that was forked, in which Lance may hang; use dataset.loader(num_workers=...)" in sent.get()
    worker.join()


def jpeg(width: int, height: int, seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "JPEG")
    return written.getvalue()


def pictures(library: Library, sizes: list[tuple[int, int]]) -> Library:
    """One video with pictures of these sizes."""
    video = made("aaaa", len(sizes), 1)
    rows = [replace(row, jpeg=jpeg(*size, row.frame_no)) for row, size in zip(video.frame_rows(), sizes, strict=True)]
    library.writer.add_frames({"aaaa": rows})
    assert library.writer.complete([video.video_row()]) == ()
    return library


def test_pictures_are_decoded_and_stacked_or_given_to_a_transform(library: Library) -> None:
    frames = pictures(library, [(24, 16)] * 4)
    batch = next(iter(dataset(frames, 4, ("image", "jpeg"))))
    assert batch["image"].shape == (4, 3, 16, 24) and batch["image"].dtype == torch.uint8
    with Image.open(io.BytesIO(batch["jpeg"][2])) as picture:
        assert np.array_equal(batch["image"][2].permute(1, 2, 0).numpy(), np.asarray(picture.convert("RGB")))
    sizes = next(iter(dataset(frames, 4, ("image",), transform=lambda picture: picture.size)))
    assert sizes["image"] == [(24, 16)] * 4
    frames.writer.discard("aaaa")
    batch = next(iter(dataset(pictures(frames, [(24, 16), (16, 24)]), 2, ("image",), seed=None)))
    assert [each.shape for each in batch["image"]] == [(3, 16, 24), (3, 24, 16)], "of different sizes: a list"


def test_a_dataset_can_be_pickled_and_numbers_are_checked(patchy: Library) -> None:
    frames = dataset(patchy)
    assert keys(pickle.loads(pickle.dumps(frames))) == keys(frames)
    assert (frames.rows, frames.versions.keys()) == (len(ALL), {"videos", "frames"})
    refused: dict[str, dict[str, Any]] = {
        "got seed -1": {"seed": -1},
        "got rank 1 of 1": {"rank": 1},
        "size of 0": {"size": 0},
    }
    for words, options in refused.items():
        with pytest.raises(QueryError, match=words):
            dataset(patchy, **options)
    with pytest.raises(LibraryError, match=r"a stored picture of .* cannot be read"):
        next(iter(dataset(patchy, 4, ("image",))))
