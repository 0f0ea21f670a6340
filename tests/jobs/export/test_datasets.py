"""A library as a dataset for Hugging Face, and the folder that an interrupted export fills later."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from kinodex.index.errors import DamagedRows
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.filters import equal
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.hf_card import card_text
from kinodex.jobs.export.hf_dataset import export_hf
from kinodex.jobs.export.hf_settings import HfReport, HfSettings, Precision
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

datasets = pytest.importorskip("datasets")
FILES = 3
SMALL = HfSettings(shard_frames=30)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`load_dataset` with a cache of these tests."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KMP_DUPLICATE_LIB_OK", "True")  # which a package that it loads sets
        datasets.disable_progress_bars()
        yield lambda folder, **options: datasets.load_dataset(str(folder), cache_dir=str(cache), **options)
        datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def films_library(library: Path) -> Library:
    return Library.open(str(library))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_dataset_has_every_frame_with_picture_vector_and_time(
    films_library: Library, tmp_path: Path, load: Any
) -> None:
    report = export_hf(films_library, tmp_path / "films", SMALL)
    assert (report.videos, report.frames, report.files) == (3, 90, FILES)
    split = load(tmp_path / "films", split="train")
    assert split.num_rows == 90
    assert isinstance(split.features["image"], datasets.Image)
    assert split.features["vector"].feature.dtype == "float16" and split.features["vector"].length == 256
    rows = iter(split)
    for video in films_library.videos():
        stored = films_library.vectors(video.video_id)
        frames = films_library.frames(video.video_id, stored.frame_no.tolist())
        for frame, vector, row in zip(frames, stored.vectors, rows, strict=False):
            assert (row["video_id"], row["title"]) == (video.video_id, video.title)
            assert (row["frame_no"], row["time_s"]) == (frame.frame_no, frame.time_s)
            assert row["image"].size == (row["width_px"], row["height_px"]) == (frame.width_px, frame.height_px)
            with Image.open(io.BytesIO(frame.jpeg)) as picture:
                assert np.array_equal(np.asarray(row["image"]), np.asarray(picture))
            assert np.array_equal(np.asarray(row["vector"], np.float16), vector)
    (file, *_) = sorted((tmp_path / "films" / "data").iterdir())
    alone = datasets.Dataset.from_parquet(str(file), cache_dir=str(tmp_path / "cache"))
    assert isinstance(alone[0]["image"], Image.Image), "a file alone is read as pictures by its schema"


def test_an_export_that_was_cut_off_goes_on_and_shows_nothing_before_its_end(
    films_library: Library, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_hf(films_library, tmp_path / "films", SMALL, on_file=stop)
    assert [entry.name for entry in (tmp_path / "films").iterdir()] == [".unfinished"]
    with pytest.raises(UsageError, match="an unfinished export with another vectors"):
        export_hf(films_library, tmp_path / "films", HfSettings(vectors="none", shard_frames=30))
    report = export_hf(films_library, tmp_path / "films", SMALL)
    assert (report.files_before, report.files, report.frames) == (2, FILES, 90)
    export_hf(films_library, tmp_path / "whole", SMALL)
    again, whole = tree(tmp_path / "films"), tree(tmp_path / "whole")
    assert again.pop("README.md").replace(b"films", b"whole") == whole.pop("README.md")
    assert again == whole
    assert len(whole) == FILES


def test_only_complete_videos_are_exported_and_long_ones_in_parts(tmp_path: Path, load: Any) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 1300, 1))
    write(library, made("cccc", 20, 2), complete=False)
    write(library, made("bbbb", 5, 3))
    export_hf(library, tmp_path / "out", HfSettings(shard_frames=100))
    rows = load(tmp_path / "out", split="train").select_columns(["video_id", "frame_no"])
    held = [(row["video_id"], row["frame_no"]) for row in rows]
    assert held == [("aaaa", n) for n in range(1300)] + [("bbbb", n) for n in range(5)]


def test_a_video_with_altered_values_is_not_exported(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for seed, video_id in enumerate(("aaaa", "bbbb")):
        write(library, made(video_id, 6, seed))
    library.tables.update(library.vectors_table, equal("video_id", "aaaa") & equal("frame_no", 2), {"time_s": 2.5})
    library.tables.update("videos", equal("video_id", "bbbb"), {"title": "another"})
    for video, table in (("aaaa", library.vectors_table), ("bbbb", "videos")):
        with pytest.raises(DamagedRows, match=f"a value in {table} of video {video} in"):
            export_hf(library, tmp_path / video, SMALL, [video])
        assert not (tmp_path / video).exists()


def test_the_card_has_splits_features_sizes_and_what_the_columns_are() -> None:
    space = Fingerprint("ViT-B-16/webli", "a" * 12, "b" * 64, "{}", 768)

    def card(frames: int = 34_567, vectors: Precision = "float16") -> str:
        return card_text("my: films", HfSettings(vectors), HfReport(12, frames, 1, 1000, 0), space, 0.5, 2000)

    text = card()
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["pretty_name"] == "my: films"
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-*"}]
    assert head["dataset_info"]["splits"] == [{"name": "train", "num_bytes": 2000, "num_examples": 34_567}]
    assert {"name": "vector", "sequence": "float16", "length": 768} in head["dataset_info"]["features"]
    for frames, size in ((999, "n<1K"), (1000, "1K<n<10K"), (2 * 10**9, "1B<n<10B")):
        assert f"size_categories:\n- {size}\n" in card(frames)
    assert "34,567 frames of 12 videos, 0.5 a second;" in text
    assert "| `vector` | 768 numbers, float16 | of unit length, in the space `ViT-B-16/webli` |" in text
    assert "vector" not in card(vectors="none")
