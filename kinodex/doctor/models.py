"""Checks of models for `kinodex doctor`: those that kinodex brings are loaded, those in the hub's cache are listed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.doctor.check_result import CheckResult
from kinodex.doctor.machine import gigabytes
from kinodex.errors import KinodexError
from kinodex.index.spaces.default_model import parts_not_cached
from kinodex.index.spaces.model_names import DEFAULT_REPO, DEFAULT_SPACE, PHOTO_SPACE
from kinodex.index.spaces.towers import SHIPPED, read_towers

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo


of_models = partial(CheckResult, "models")
MODELS_LISTED = 12
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


def check_models() -> list[CheckResult]:
    shipped = [_check_shipped(name) for name in SHIPPED]
    if importlib.util.find_spec("open_clip") is None:
        return [
            *shipped,
            of_models("default space", "missing", "open_clip is not installed", "pip install 'kinodex[clip]'"),
        ]
    return [*shipped, _check_hub(), *list_cached(_cached_models()), check_default_space()]


def _check_shipped(name: str) -> CheckResult:
    """Load the text tower of a space that kinodex brings, and say what that is good for."""
    from kinodex.index.spaces import load

    try:
        towers = read_towers(SHIPPED[name])
        dim = load.load_text_tower(name).embed_text(["a red kite"]).shape[1]
    except (KinodexError, ImportError, OSError, RuntimeError) as error:
        todo = "pip install -U --force-reinstall kinodex"
        return of_models(name, "broken", f"{type(error).__name__}: {error}", todo)
    what = f"; {towers.card.summary}" if towers and towers.card else ""
    return of_models(name, "ok", f"loaded, embeds a text in {dim} dimensions{what}")


def _check_hub() -> CheckResult:
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    from kinodex.index.spaces.quick_hub import quick_hub

    only = "only models that are cached, or here as folders (local-dir:FOLDER), load"
    if HF_HUB_OFFLINE:
        return of_models("hub", "missing", "not asked: HF_HUB_OFFLINE is set", f"{only}; unset it to fetch more")
    with quick_hub() as answers:
        if answers:
            return of_models("hub", "ok", f"{ENDPOINT} answers: models that are not here can be fetched")
    return of_models("hub", "missing", f"{ENDPOINT} is not reached", f"{only}; or set HF_ENDPOINT to a mirror")


def _cached_models() -> list[CachedRepoInfo]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    return sorted((each for each in repos if each.repo_type == "model"), key=lambda each: -each.size_on_disk)


def list_cached(cached: Iterable[CachedRepoInfo]) -> list[CheckResult]:
    found = [_describe(each) for each in cached]
    if len(found) > MODELS_LISTED:
        others = of_models("further", "ok", f"{len(found) - MODELS_LISTED} smaller models in the cache")
        return [*found[:MODELS_LISTED], others]
    if not found:
        todo = "they are fetched when first used; or copy them here and name folders"
        return [of_models("cached", "missing", "none in the hub's cache", todo)]
    return found


def _describe(repo: CachedRepoInfo) -> CheckResult:
    """Describe a cached model by its kind and size; one without weights is missing."""
    files = _files(repo)
    kind = "open_clip" if "open_clip_config.json" in files else "other"
    if kind == "other" and "config.json" in files:
        kind = f"transformers, {_architecture(files['config.json'])}"
    size = f"{gigabytes(repo.size_on_disk)} ({kind})"
    if not any(name.endswith(WEIGHTS) for name in files):
        return of_models(repo.repo_id, "missing", f"{size} without weights", "it is fetched when first used")
    return of_models(repo.repo_id, "ok", size)


def _files(repo: CachedRepoInfo) -> dict[str, Path]:
    return {file.file_name: file.file_path for revision in repo.revisions for file in revision.files}


def _architecture(config: Path) -> str:
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return "config unreadable"
    return str((settings.get("architectures") or [settings.get("model_type", "unknown")])[0])


def check_default_space() -> CheckResult:
    """Check that its weights are cached, which an ingest needs, and its tokenizer, which a search by words needs."""
    missing = parts_not_cached()
    if "weights" in missing:
        todo = f"the first ingest fetches it from the hub ({DEFAULT_REPO}); offline it takes {PHOTO_SPACE}"
        return of_models("default space", "missing", f"{DEFAULT_SPACE} is not cached", todo)
    if missing:
        message = f"{DEFAULT_SPACE}: its weights are cached, its tokenizer is not; a search by words needs it"
        todo = f"the next ingest fetches it from the hub ({DEFAULT_REPO}); offline it takes {PHOTO_SPACE}"
        return of_models("default space", "missing", message, todo)
    return of_models("default space", "ok", f"{DEFAULT_SPACE}, cached ({DEFAULT_REPO})")
