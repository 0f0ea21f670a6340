"""`kinodex sample`: into a new or an empty folder only; what it writes is tested with the whole job."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Kinodex, bad


def test_a_folder_with_files_is_refused(kinodex: Kinodex, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    bad(kinodex, "sample", tmp_path, code=2, says=f"{tmp_path} already exists; give a new or an empty folder")
    bad(kinodex, "sample", tmp_path / "notes.txt", code=2, says="already exists")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
