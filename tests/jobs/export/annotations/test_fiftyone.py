"""Data sets of FiftyOne: frames from 1, within the video. FiftyOne itself reads one in test_export_programs.py."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.export.annotations.fiftyone import export_fiftyone
from tests.support.libraries.moments import moments, video


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
