"""Models: the built-in one is loaded, those in the hub's cache are listed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from index.errors import KinodexError
from jobs.doctor import CheckResult
from jobs.doctor.machine import gigabytes

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo

SECTION = "models"
LISTED = 12
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")


def check_models() -> list[CheckResult]:
    """Check the built-in model, the hub, its cache, and the default space."""
    builtin = _check_builtin()
    cached = _cached_models()
    return [builtin, _check_hub(), *list_cached(cached), check_default_space(cached)]


def _check_builtin() -> CheckResult:
    from index.embedding.space import load_space

    try:
        dim = load_space("builtin", device="cpu").embed_text(["a red kite"]).shape[1]
    except (KinodexError, ImportError, OSError, RuntimeError) as error:
        todo = "pip install -U --force-reinstall kinodex, and torch and torchvision of one build"
        return CheckResult(SECTION, "builtin", "broken", f"{type(error).__name__}: {error}", todo)
    return CheckResult(
        SECTION, "builtin", "ok", f"loaded, embeds a text in {dim} dimensions; knows only the sketch world"
    )


def _check_hub() -> CheckResult:
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    from index.embedding.model_source import quick_hub

    only = "only models that are cached, or here as folders (local-dir:FOLDER), load"
    if HF_HUB_OFFLINE:
        return CheckResult(
            SECTION, "hub", "missing", "not asked: HF_HUB_OFFLINE is set", f"{only}; unset it to fetch more"
        )
    with quick_hub() as answers:
        if answers:
            return CheckResult(SECTION, "hub", "ok", f"{ENDPOINT} answers: models that are not here can be fetched")
    return CheckResult(
        SECTION, "hub", "missing", f"{ENDPOINT} is not reached", f"{only}; or set HF_ENDPOINT to a mirror"
    )


def _cached_models() -> list[CachedRepoInfo]:
    """Models in the hub's cache, the largest first."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir().repos
    except CacheNotFound:
        return []
    return sorted((each for each in repos if each.repo_type == "model"), key=lambda each: -each.size_on_disk)


def list_cached(cached: Iterable[CachedRepoInfo]) -> list[CheckResult]:
    """List cached models, at most `LISTED` of them one by one."""
    found = [_describe(each) for each in cached]
    if len(found) > LISTED:
        others = CheckResult(SECTION, "further", "ok", f"{len(found) - LISTED} smaller models in the cache")
        return [*found[:LISTED], others]
    if not found:
        todo = "they are fetched when first used; or copy them here and name folders"
        return [CheckResult(SECTION, "cached", "missing", "none in the hub's cache", todo)]
    return found


def _describe(repo: CachedRepoInfo) -> CheckResult:
    """Describe a cached model by its kind and size; one without weights is missing."""
    files = {file.file_name: file for revision in repo.revisions for file in revision.files}
    kind = "open_clip" if "open_clip_config.json" in files else "other"
    if kind == "other" and "config.json" in files:
        kind = f"transformers, {_architecture(files['config.json'].file_path)}"
    size = f"{gigabytes(repo.size_on_disk)} ({kind})"
    if not any(name.endswith(WEIGHTS) for name in files):
        return CheckResult(SECTION, repo.repo_id, "missing", f"{size} without weights", "it is fetched when first used")
    return CheckResult(SECTION, repo.repo_id, "ok", size)


def _names(repo: CachedRepoInfo) -> set[str]:
    return {file.file_name for revision in repo.revisions for file in revision.files}


def _architecture(config: Path) -> str:
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "config unreadable"
    return str((settings.get("architectures") or [settings.get("model_type", "unknown")])[0])


def check_default_space(cached: Iterable[CachedRepoInfo]) -> CheckResult:
    """Check that its weights are cached, which an ingest needs, and its tokenizer, which a search by words needs."""
    from index.embedding.model_source import DEFAULT_SPACE
    from index.embedding.space import import_open_clip

    architecture, _, tag = DEFAULT_SPACE.partition("/")
    open_clip = import_open_clip()
    repo = str(open_clip.get_pretrained_cfg(architecture, tag).get("hf_hub", "")).strip("/")
    tokenizer = str(open_clip.get_model_config(architecture)["text_cfg"].get("hf_tokenizer_name", ""))
    held = {each.repo_id: _names(each) for each in cached}
    if any(name.endswith(WEIGHTS) for name in held.get(repo, ())):
        if not tokenizer or held.get(tokenizer, set()).intersection(TOKENIZERS):
            return CheckResult(SECTION, "default space", "ok", f"{DEFAULT_SPACE}, cached ({repo})")
        message = f"{DEFAULT_SPACE}: its weights are cached, its tokenizer is not; a search by words needs it"
        todo = f"the next ingest fetches it from the hub ({tokenizer})"
        return CheckResult(SECTION, "default space", "missing", message, todo)
    todo = f"the first ingest fetches it from the hub ({repo}); without one, name another with --space"
    return CheckResult(SECTION, "default space", "missing", f"{DEFAULT_SPACE} is not cached", todo)
