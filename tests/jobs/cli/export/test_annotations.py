"""`kinodex export label-studio`, `coco` and `fiftyone`: what they print and refuse."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Kinodex, bad, json_of


def test_annotations_of_the_shots(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    assert json_of(kinodex, "export", "label-studio", library, tmp_path / "tasks")["tasks"] == 3
    assert json_of(kinodex, "export", "fiftyone", library, tmp_path / "fiftyone")["videos"] == 3
    bad(kinodex, "export", "coco", library, tmp_path / "coco", code=2, says="kinodex add detections")
