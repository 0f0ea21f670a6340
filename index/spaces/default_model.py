"""The files of the default space's model in the hub's cache of this machine."""

from __future__ import annotations

from kinodex.index.spaces.checked_copy import TOKENIZER, WEIGHTS
from kinodex.index.spaces.model_names import DEFAULT_REPO

PARTS = {"weights": WEIGHTS, "tokenizer": TOKENIZER}
"""What an ingest and a search by words need, and the file that holds it."""


def parts_not_cached() -> list[str]:
    """List the parts of the default space's model ("weights", "tokenizer") that the hub's cache lacks."""
    from huggingface_hub import try_to_load_from_cache

    return [part for part, file in PARTS.items() if not isinstance(try_to_load_from_cache(DEFAULT_REPO, file), str)]
