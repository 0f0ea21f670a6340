"""The space of a new library for which nobody named one: the default one where its model can be had, else `photo`."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING

from kinodex.index.library import Library
from kinodex.index.spaces.default_model import parts_not_cached
from kinodex.index.spaces.model_names import DEFAULT_SPACE, PHOTO_SPACE
from kinodex.index.spaces.quick_hub import hub_answers

if TYPE_CHECKING:
    from kinodex.jobs.ingest.config import IngestConfig

AUTO = "auto"
ANSWER_S = 1.5
"""The hub is given so long; the choice is to be told within two seconds."""
PACKAGES = ("open_clip", "torch", "transformers")

log = logging.getLogger(__name__)


def with_space(config: IngestConfig, uri: str) -> IngestConfig:
    """Return the settings with a space: theirs, else that of the library at `uri`, else the default one or `photo`."""
    if config.space != AUTO:
        return config
    name = Library.open(uri).space_name if Library.exists(uri) else default_space(uri)
    return config.model_copy(update={"space": name})


def default_space(uri: str) -> str:
    """Return the default space where its model can be had, else `photo`; log why, and how to move on later."""
    if not (why := why_not_here()):
        return DEFAULT_SPACE
    log.warning(
        "note: the default space, %s, cannot be had here: %s; using %s, a small space for everyday scenes. "
        "Where it can be had, run: kinodex add vectors %s --space %s",
        DEFAULT_SPACE,
        why,
        PHOTO_SPACE,
        quote(uri),
        DEFAULT_SPACE,
    )
    return PHOTO_SPACE


def why_not_here() -> str:
    """Say why the model of the default space cannot be had here; "" if it is in the hub's cache or the hub answers."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        return f"it needs {' and '.join(missing)} (pip install 'kinodex[ingest,hf]')"
    from huggingface_hub import constants

    if not parts_not_cached():
        return ""
    if constants.HF_HUB_OFFLINE:
        return "it is not in the hub's cache, and HF_HUB_OFFLINE is set"
    return "" if hub_answers(ANSWER_S) else f"it is not in the hub's cache, and {constants.ENDPOINT} does not answer"
