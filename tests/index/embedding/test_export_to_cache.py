"""The export of an image tower into the user's cache, in a process of its own."""

from __future__ import annotations

import fcntl

import pytest

from kinodex.index.errors import SpaceMismatch
from kinodex.index.spaces.cpu import ExportBusy, ImageTower, export_in_child, export_to_cache
from kinodex.index.spaces.space import load_space
from kinodex.index.spaces.towers import cached_place
from tests.support.models.tiny_models import TINY, write_model


@pytest.fixture
def name(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_model(tmp_path / "model", TINY)


def digest_of(name: str) -> str:
    return load_space(name, device="cpu", towers="image").fingerprint.digest


def test_a_tower_that_is_there_is_not_exported_again(name):
    digest = digest_of(name)
    folder = export_to_cache(name, digest)
    assert folder == cached_place(digest, "image")
    assert ImageTower.open(folder).fingerprint.digest == digest
    written = (folder / "tower.json").stat()
    assert export_to_cache(name, digest) == folder
    assert (folder / "tower.json").stat() == written


@pytest.mark.slow
def test_a_child_says_in_a_line_why_it_failed(name):
    problem = export_in_child(name, "0" * 12)
    assert problem is not None
    assert problem.startswith(f"here {name} stands for other weights: ")


def test_another_checkpoint_of_the_same_name_is_refused(name):
    with pytest.raises(SpaceMismatch, match="stands for other weights"):
        export_to_cache(name, "0" * 12)
    assert not cached_place("0" * 12, "image").exists()


@pytest.mark.slow
def test_one_process_exports_at_a_time(name):
    place = cached_place("1" * 12, "image")
    place.parent.mkdir(parents=True)
    with (place.parent / ".image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ExportBusy):
            export_to_cache(name, "1" * 12)
        with pytest.raises(ExportBusy):
            export_in_child(name, "1" * 12)
