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
    def has_vectors(self) -> bool:
        """False of `NO_SPACE`."""
        return self.dim > 0

    @property
    def is_served(self) -> bool:
        """True of a model behind an endpoint."""
        return self.model == SERVED

    @property
    def digest(self) -> str:
        """12 hex digits over everything but the name: the same model from another path is the same space."""
        return _digest(self)

    def is_own(self, name: str | None) -> bool:
        """Return True if a name stands for this, a library's own space, without a look at its other spaces."""
        return name in (None, self.digest) or (name == self.name and not self.has_vectors)

    def __str__(self) -> str:
        if not self.has_vectors:
            return f"{self.name} (no vectors)"
        return f"{self.name} (fingerprint {self.digest}, {self.dim} dimensions)"


NO_SPACE = Fingerprint(
    name="none",
    model="none",
    weights_sha256="",
    preprocess='{"interpolation": "bilinear", "resize_mode": "squash", "size": [9, 16]}',
    dim=0,
)
"""In the place of a space, in a library whose frames have no vectors; its shots are found by pictures of this size."""


@lru_cache(maxsize=256)
def _digest(space: Fingerprint) -> str:
    facts = asdict(space)
    del facts["name"]
    return sha256_of_json(facts)[:12]


def sha256_of_json(value: Any) -> str:
    """Hash a value of JSON, keys sorted, as hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
