"""Many frames at once through the front door: Arrow for pandas and DuckDB, torch, and clear words for bad options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinodex
from tests.support.late import late

torch = late("torch")


@pytest.fixture(scope="module")
def opened(library: Path) -> kinodex.Library:
    return kinodex.open(library)


def test_arrow_has_every_frame_with_what_belongs_to_it(opened: kinodex.Library) -> None:
    """The vectors wider, for programs that know no float16, if asked for."""
    table = opened.to_arrow(["title", "time_s", "jpeg", "vector"]).read_all()
    assert (table.column_names, table.num_rows) == (["title", "time_s", "jpeg", "vector"], 90)
    film = opened.video("film-02")
    rows = [row for row in table.to_pylist() if row["title"] == film.title]
    assert [row["time_s"] for row in rows] == opened.vectors(film).time_s.tolist()
    assert [row["jpeg"] for row in rows] == [frame.jpeg for frame in opened.all_frames(film)]
    wide = opened.to_arrow(["vector", "time_s"], videos="film-02", float32=True).read_all()
    assert str(wide.schema.field("vector").type).startswith("fixed_size_list<") and wide.num_rows == 30
    vectors = np.array(wide["vector"].to_pylist(), np.float32)
    assert np.array_equal(vectors, opened.vectors("film-02").vectors.astype(np.float32))
    assert opened.to_arrow("time_s", float32=True).schema.names == ["time_s"]


def test_torch_gives_pictures_and_vectors_of_the_same_frames(opened: kinodex.Library) -> None:
    frames = opened.to_torch(["video_id", "frame_no", "image", "vector"], batch_size=32, seed=5)
    batches = list(frames)
    assert [len(batch["frame_no"]) for batch in batches] == [32, 32, 26]
    first = batches[0]
    row = opened.frames(first["video_id"][3], [float(first["frame_no"][3])])[0]
    assert np.array_equal(first["image"][3].permute(1, 2, 0).numpy(), row.array)
    stored = opened.vectors(first["video_id"][3])
    assert np.array_equal(first["vector"][3].numpy(), stored.vectors[stored.frame_no == int(first["frame_no"][3])][0])


def test_ranks_come_from_torch_or_from_the_options(opened: kinodex.Library, tmp_path: Path) -> None:
    half = opened.to_torch("frame_no", rank=1, world_size=2)
    assert (half.rank, half.world_size) == (1, 2)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/met", rank=0, world_size=1)
    try:
        assert (opened.to_torch("frame_no").rank, opened.to_torch("frame_no").world_size) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


def test_what_makes_no_sense_is_refused(opened: kinodex.Library) -> None:
    cases: tuple[tuple[list[str], dict[str, Any], str], ...] = (
        (["picture"], {}, "got columns picture; give some of"),
        (["image"], {"batchsize": 3}, "got batchsize; to_torch takes batch_size, drop_last"),
        (["image"], {"rank": 1}, "got one of rank and world_size"),
        (["image"], {"videos": ["film-99"]}, "film-99"),
    )
    for columns, options, words in cases:
        with pytest.raises(kinodex.KinodexError, match=words):
            opened.to_torch(columns, **options)


WITHOUT = """
import sys
from tests.support.without_modules import hide
hide(["torch", "ray", "av"])
import kinodex
library = kinodex.open(sys.argv[1])
print(library.to_arrow("frame_no").read_all().num_rows)
for read in (library.to_torch, library.to_ray):
    try:
        read("frame_no")
    except kinodex.UsageError as error:
        print(error)
"""


@pytest.mark.slow
def test_without_torch_and_ray_arrow_remains_and_the_others_say_what_they_need(library: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(library)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "90",
        "this needs the package torch, which is not installed; pip install 'kinodex[clip]'",
        "this needs the package ray, which is not installed; pip install 'kinodex[ray]'",
    ]
