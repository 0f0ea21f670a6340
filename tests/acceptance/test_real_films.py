"""A user's own films, without a hub of models: `kinodex ingest` takes the space that kinodex brings, and says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kinodex as package
from tests.support.command import Kinodex, json_of
from tests.support.runs.check_results import cached_model
from tests.support.servers.model_hub import NOBODY_THERE, hub_at

DEFAULT_SPACE, DEFAULT_REPO = "ViT-B-32-SigLIP2-256/webli", "timm/ViT-B-32-SigLIP2-256"
CLIPS = ("torchcodec__dog_eating_854132.mp4", "askanything__playing_guitar.mp4", "pixeltable__bangkok_half_res.mp4")


@pytest.fixture
def own_films(media: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for name in CLIPS:
        shutil.copyfile(media / "clips" / name, folder / name)
    return folder


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine that has no model in its cache and reaches no hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with hub_at(NOBODY_THERE):
        yield tmp_path / "hub"


@pytest.mark.usefixtures("alone")
def test_they_are_indexed_and_searched_offline(kinodex: Kinodex, own_films: Path, tmp_path: Path) -> None:
    library = tmp_path / "mine"
    ran = kinodex("ingest", own_films, "--library", library)
    assert ran.code == 0 and "3 indexed" in ran.out, ran
    assert f"the default space, {DEFAULT_SPACE}, cannot be had here" in ran.err and "using photo" in ran.err
    assert f"kinodex add vectors {library} --space {DEFAULT_SPACE}" in ran.err
    for query, clip in zip(("a white puppy", "a man playing guitar", "a street full of cars"), CLIPS, strict=True):
        (first,) = json_of(kinodex, "search", library, query, "-k", 1)
        assert first["title"] == Path(clip).stem, query
    info = kinodex("info", library)
    assert "space photo" in info.out and "small, for everyday scenes" in info.out
    again = kinodex("ingest", own_films, "--library", library)
    assert again.code == 0 and "default space" not in again.err, "the library has its space"


def test_the_default_space_is_taken_where_its_model_is_cached(alone: Path, own_films: Path, tmp_path: Path) -> None:
    """The model that is tried here is no model, which is said: nothing else is taken in its place."""
    files = {"open_clip_config.json": "{}", "open_clip_model.safetensors": "none", "tokenizer.json": "{}"}
    cached_model(alone, DEFAULT_REPO, files)
    with pytest.raises(package.KinodexError, match=DEFAULT_SPACE):
        package.ingest(own_films / CLIPS[0], library=tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.usefixtures("alone")
def test_a_space_that_is_named_is_refused_where_it_cannot_be_had(own_films: Path, tmp_path: Path) -> None:
    with pytest.raises(package.KinodexError, match="ViT-B-32-SigLIP2-256/webli cannot be had"):
        package.ingest(own_films / CLIPS[0], library=tmp_path / "other", space=DEFAULT_SPACE)
