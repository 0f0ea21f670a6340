"""Models in the hub's cache, as its client keeps them, and the default space among them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import CachedRepoInfo, scan_cache_dir

from kinodex.doctor.machine import MODELS_LISTED, check_default_space, list_cached
from tests.support.runs.check_results import by_name, cached_model

DEFAULT = "timm/ViT-B-32-SigLIP2-256"


def cached(folder: Path) -> Iterable[CachedRepoInfo]:
    return scan_cache_dir(folder).repos


def test_kinds_of_cached_models(tmp_path: Path) -> None:
    cached_model(tmp_path, "org/eyes", {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w" * 1000})
    cached_model(tmp_path, "org/ears", {"config.json": '{"architectures": ["Whisper"]}', "model.safetensors": "w"})
    cached_model(tmp_path, "org/begun", {"config.json": "{}"})
    cached_model(tmp_path, "org/odd", {"config.json": "no JSON", "model.bin": "w"})
    found = by_name(list_cached(cached(tmp_path)))
    assert "(open_clip)" in found["org/eyes"].said
    assert "(transformers, Whisper)" in found["org/ears"].said
    assert (found["org/begun"].state, "without weights" in found["org/begun"].said) == ("missing", True)
    assert "(transformers, config unreadable)" in found["org/odd"].said


def test_a_long_list_ends_in_a_count(tmp_path: Path) -> None:
    for number in range(MODELS_LISTED + 3):
        cached_model(tmp_path, f"org/model-{number}", {"model.bin": "w"})
    found = list_cached(cached(tmp_path))
    assert (len(found), found[-1].said) == (MODELS_LISTED + 1, "3 smaller models in the cache")
    assert [each.state for each in list_cached(())] == ["missing"]


def test_the_default_space(tmp_path: Path) -> None:
    weights = {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w"}
    assert "is not cached" in check_default_space(()).said
    cached_model(tmp_path / "half", DEFAULT, weights)
    found = check_default_space(cached(tmp_path / "half"))
    assert (found.state, "its weights are cached, its tokenizer is not" in found.said) == ("missing", True)
    assert found.todo == f"the next ingest fetches it from the hub ({DEFAULT})"
    cached_model(tmp_path / "whole", DEFAULT, weights | {"tokenizer.json": "{}"})
    assert check_default_space(cached(tmp_path / "whole")).state == "ok"
