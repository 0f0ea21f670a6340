"""Likeness from which on a sentence model's lines count as found: a nearest line always exists, like or not.

How near two texts are that have nothing in common differs from model to model: about 0 for all-MiniLM-L6-v2, 0.7 for
E5. So it is measured once for each: `QUERIES` and `LINES` are about different things, and their cosines are those of
chance. A line is found from `DEVIATIONS` standard deviations above their mean on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from index.embedding.sentences.sentence_model import SentenceEmbedder

DEVIATIONS = 4.0
QUERIES = (
    "a dog catches a frisbee",
    "car",
    "snow",
    "who won the match",
    "the price of bread",
    "somebody opens the door",
    "how to change a tyre",
    "a woman playing the violin",
    "the doctor explains the diagnosis",
    "children at the beach",
    "a red umbrella",
    "they talk about money",
    "the rocket is launched",
    "why is he angry",
    "a train arrives at the station",
    "wedding",
    "the recipe for tomato soup",
    "an elephant in the river",
    "what time does the meeting start",
    "a man climbs a wall of rock",
    "the election result",
    "she is afraid of spiders",
    "a map of Europe",
    "how photosynthesis works",
)
LINES = (
    "The museum is closed on Mondays.",
    "Put the battery in with the plus sign up.",
    "I never liked that painting.",
    "PLATFORM 9",
    "He folds the paper twice and cuts along the line.",
    "Thank you.",
    "So what do we do now?",
    "A potter shapes a bowl on a spinning wheel.",
    "Episode 3: The Lighthouse",
    "You have to multiply both sides by x.",
    "My grandmother kept bees behind the house.",
    "A barber trims the beard of a customer.",
    "The keyboard has a loose key.",
    "NO ENTRY",
    "Two people carry a mattress up the stairs.",
    "We recorded the album in eleven days.",
    "The medieval town was fortified in 1340.",
    "Okay, let me try again.",
    "A tailor measures a sleeve with a yellow tape.",
    "In the third chapter the author changes her mind.",
    "Turn left after the pharmacy.",
    "An empty corridor with fluorescent lamps.",
    "The goats are milked before sunrise.",
    "Subscribe for more videos!",
    "It was not my fault, your honour.",
    "Welders in masks join two beams.",
    "The glacier has lost a third of its length.",
    "I will call you back tomorrow.",
    "A chess player stops the clock.",
    "Serves four, ready in thirty minutes",
    "The patch fixes a bug in the parser.",
    "Feathers of this kind keep out the water.",
)


@dataclass(frozen=True, slots=True)
class Likeness:
    """The cosines of a sentence model's texts that have nothing in common."""

    mean: float
    deviation: float

    @property
    def least(self) -> float:
        """The least cosine of a line that counts as found."""
        return min(self.mean + DEVIATIONS * self.deviation, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Write both numbers as JSON can hold them."""
        return asdict(self)


def measure_likeness(model: SentenceEmbedder) -> Likeness:
    """Compare `QUERIES` and `LINES` by a model; the same model gives the same numbers, to its rounding."""
    cosines = model.embed_texts(QUERIES) @ model.embed_lines(LINES).T
    return Likeness(round(float(np.mean(cosines)), 4), round(float(np.std(cosines)), 4))
