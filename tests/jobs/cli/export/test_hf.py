"""`kinodex export hf`: what it prints, and what it refuses."""

from __future__ import annotations

from pathlib import Path

from kinodex.index.library import Library
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.random_library import SETTINGS, fingerprint


def test_the_command_says_what_it_wrote(library: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    ran = kinodex("export", "hf", library, tmp_path / "films", "--video", "film-01")
    assert ran.code == 0
    assert ran.out.startswith("30 frames of 1 video in 1 file, ")
    written = json_of(kinodex, "export", "hf", library, tmp_path / "json", "--shard-frames", 30)
    assert (written["videos"], written["frames"], written["files"], written["files_before"]) == (3, 90, 3, 0)


def test_what_makes_no_sense_is_refused(library: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    file = tmp_path / "file"
    file.write_text("")
    new = tmp_path / "new"
    for arguments, code, words in (
        ((full,), 2, "which is not empty (notes.txt); give a folder that is new or empty"),
        ((file,), 2, "which is a file; give a folder"),
        ((new, "--vectors", "int8"), 2, "got vectors 'int8'; give float16, float32, none"),
        ((new, "--split", "a b"), 2, "got split 'a b'"),
        ((new, "--video", "film-99"), 2, "film-99"),
        ((new, "--space", "ViT-X"), 4, "got space ViT-X"),
    ):
        bad(kinodex, "export", "hf", library, *arguments, code=code, says=words)
    assert not new.exists()
    Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint())
    bad(kinodex, "export", "hf", tmp_path / "empty", new, code=2, says="has no frames to export")
