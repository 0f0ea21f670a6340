"""Identity of an embedding space."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

SERVED = "served"
"""In the place of a configuration's digest: of a served model nothing is known but its name and how it is asked."""
MOST_DIMENSIONS = 1 << 20


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of a space: its vectors are comparable. Two spaces are the same if all but the name is."""

    name: str
    """The argument of `load_space`."""
    model: str
    """12 hex digits of the sha256 of the architecture's configuration."""
    weights_sha256: str
    preprocess: str
    """open_clip's preprocessing settings as JSON with sorted keys."""
    dim: int
    normalised: bool = True

    @property
    def is_served(self) -> bool:
        """True of a model behind an endpoint."""
        return self.model == SERVED

    @property
    def digest(self) -> str:
        """12 hex digits over everything but the name: the same model from another path is the same space."""
        return _digest(self)

    def __str__(self) -> str:
        return f"{self.name} (fingerprint {self.digest}, {self.dim} dimensions)"


@lru_cache(maxsize=256)
def _digest(space: Fingerprint) -> str:
    facts = asdict(space)
    del facts["name"]
    return sha256_of_json(facts)[:12]


def sha256_of_json(value: Any) -> str:
    """Hash a value of JSON, keys sorted, as hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
