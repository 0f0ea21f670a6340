"""Likeness from which on a sentence model's lines count as found: a nearest line always exists, like or not.

How near two texts are that have nothing in common differs from model to model: about 0 for all-MiniLM-L6-v2, 0.7 for
E5. So it is measured once for each: `QUERIES` and `LINES` are about different things, and their cosines are those of
chance. A line is found from `DEVIATIONS` standard deviations above their mean on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kinodex.index.spaces.export_text import CHECKS
from kinodex.index.spaces.sentence_tower import SentenceEmbedder

DEVIATIONS = 4.0
QUERIES: tuple[str, ...] = tuple(CHECKS["queries"])
LINES: tuple[str, ...] = tuple(CHECKS["lines"])


@dataclass(frozen=True, slots=True)
class Likeness:
    """The cosines of a sentence model's texts that have nothing in common."""

    mean: float
    deviation: float

    @property
    def least(self) -> float:
        """The least cosine of a line that counts as found."""
        return min(self.mean + DEVIATIONS * self.deviation, 1.0)


def measure_likeness(model: SentenceEmbedder) -> Likeness:
    """Compare `QUERIES` and `LINES` by a model; the same model gives the same numbers, to its rounding."""
    cosines = model.embed_texts(QUERIES) @ model.embed_lines(LINES).T
    return Likeness(round(float(np.mean(cosines)), 4), round(float(np.std(cosines)), 4))
