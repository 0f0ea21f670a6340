"""Data sets of FiftyOne: ranges in frames from 1, within the video; read by its own importer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.jobs.export.annotations import export_fiftyone
from tests.support.libraries.moments import moments, video
from tests.support.servers.third_parties.environments import printed, python_with

FIFTYONE = "fiftyone==1.22.1"
PROGRAM = """
import json, sys
from fiftyone.utils.data.importers import FiftyOneTemporalDetectionDatasetImporter as Importer
found = {}
with Importer(dataset_dir=sys.argv[1], data_path="data.json") as importer:
    for path, _, label, _ in importer:
        found[path] = [[each.label, *each.support] for each in label.detections]
print(json.dumps(found))
"""


def test_ranges_in_frames(tmp_path: Path) -> None:
    film, other = video("one"), video("two", fps=10.0)
    ranges = [*moments((1.0, 2.0, "a"), (119.5, 200.0, ""), of=film), *moments((0.0, 0.0, "b"), of=other)]
    assert export_fiftyone(ranges, tmp_path / "out") == 2
    data, labels = (json.loads((tmp_path / "out" / name).read_text()) for name in ("data.json", "labels.json"))
    assert data == {film.video_id: film.uri, other.video_id: other.uri}
    first, last = labels["labels"][film.video_id]
    assert (first["label"], first["support"]) == ("a", [26, 50])
    assert (last["label"], last["support"]) == ("range", [round(119.5 * 25) + 1, 3000])
    assert labels["labels"][other.video_id][0]["support"] == [1, 1]


@pytest.mark.third_party
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fiftyone_reads_the_ranges(tmp_path: Path) -> None:
    film, other = video("one"), video("two", fps=10.0)
    ranges = [*moments((1.0, 2.0, "a"), (3.0, 4.0, ""), of=film), *moments((0.0, 0.5, "b"), of=other)]
    export_fiftyone(ranges, tmp_path / "out")
    # Reading needs no database: this one is not there.
    nowhere = {"FIFTYONE_DATABASE_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"}
    found = printed(python_with(FIFTYONE), PROGRAM, tmp_path / "out", nowhere)
    assert found == {film.uri: [["a", 26, 50], ["range", 76, 100]], other.uri: [["b", 1, 5]]}


@pytest.mark.parametrize(
    ("start_s", "end_s", "support"),
    [(0.0, 0.5, [1, 1]), (0.0, 0.6, [1, 2]), (0.7, 1.0, [2, 2]), (1.0, 119.0, [3, 4]), (119.5, 120.0, [4, 4])],
)
def test_ranges_of_a_film_with_frames_at_uneven_times_are_the_frames_shown(
    tmp_path: Path, start_s: float, end_s: float, support: list[int]
) -> None:
    film = video("uneven", zero_s=1000.0)
    times_s = {film.video_id: (1000.0, 1000.5, 1001.0, 1110.0)}
    export_fiftyone(moments((start_s, end_s, "a"), of=film), tmp_path / "out", times_s)
    labels = json.loads((tmp_path / "out" / "labels.json").read_text())["labels"]
    assert labels[film.video_id][0]["support"] == support
