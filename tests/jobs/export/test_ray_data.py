"""A source of Ray Data: the frames of complete videos, each once, through tasks of a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.library import Library
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.servers.ray_node import RayCluster

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # Ray Data warns of its own settings
]
VIDEOS = {name: made(name, 30, seed) for seed, name in enumerate(["aaaa", "bbbb", "dddd"])}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Three complete videos in a file each, half a video between them, and rows that are there twice."""
    library = Library.create(str(tmp_path_factory.mktemp("ray") / "library"), SETTINGS, fingerprint())
    write(library, VIDEOS["aaaa"])
    write(library, made("cccc", 20, 7), complete=False)
    write(library, VIDEOS["bbbb"])
    write(library, VIDEOS["dddd"])
    library.writer.add_frames({"bbbb": VIDEOS["bbbb"].frame_rows()[:5]})
    return library


@pytest.fixture(scope="module")
def read_library(ray_cluster: RayCluster) -> Iterator[Any]:
    """The function, within a connection to the cluster."""
    from kinodex.jobs.export.ray_data import read_library
    from kinodex.jobs.ray_cluster import connected

    with pytest.MonkeyPatch.context() as patch, connected(ray_cluster.address):
        patch.setenv("RAY_DATA_USAGE_DISABLED", "1")  # else a thread looks for metrics until the process ends
        from ray.data import DataContext

        DataContext.get_current().enable_progress_bars = False
        yield read_library


def test_every_frame_of_the_complete_videos_comes_once(library: Library, read_library: Any) -> None:
    rows = read_library(library, ["video_id", "frame_no", "jpeg", "vector"], override_num_blocks=3).take_all()
    assert sorted((row["video_id"], row["frame_no"]) for row in rows) == [
        (name, number) for name in VIDEOS for number in range(30)
    ]
    for row in rows:
        assert row["jpeg"] == f"jpeg {row['video_id']} {row['frame_no']}".encode()
        assert np.array_equal(np.asarray(row["vector"], np.float16), VIDEOS[row["video_id"]].vectors[row["frame_no"]])


def test_tasks_share_the_rows_evenly(library: Library, tmp_path: Path) -> None:
    from kinodex.index.datasets.plan import plan_frames
    from kinodex.jobs.export.ray_data import LibraryFrames

    source = LibraryFrames(plan_frames(library, ["frame_no"], piece_rows=8), 100.0)
    assert source.estimate_inmemory_data_size() == 9000
    for parallelism in (1, 4, 1000):
        rows = [task.metadata.num_rows or 0 for task in source.get_read_tasks(parallelism)]
        assert sum(rows) == 90
        assert len(rows) <= parallelism and max(rows) <= 90 // parallelism + 8
    empty = Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint())
    assert LibraryFrames(plan_frames(empty, ["frame_no"]), 100.0).get_read_tasks(4) == []
