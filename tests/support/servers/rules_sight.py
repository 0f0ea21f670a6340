"""Eyes for the rule server: pictures as it gets them, seen with the image tower of the drawn space.

How strongly a picture shows a statement is its cosine with the text against its cosines with a fixed background of
phrases, every thing in every colour in every place of the sketch world: by how many deviations it is above their mean,
less by how many the best of them is above it. `SEEN` of them count as seen. (On an hour of film: 79 % of what was
true, and one false statement in 3000.)
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.spaces.load import load_image_tower, load_text_tower
from tests.sketch.vocabulary import PLACES, plural
from tests.world.drawn_space import DRAWN
from tests.world.sketch.scenes import COLOUR_NAMES, NUMBERS, PLACE_NAMES, THING_NAMES, TITLE_WORDS

Floats = NDArray[np.float64]
SEEN = 3.7
"""Deviations at which a statement counts as seen: 1.0 in what `strengths` returns."""
ALIKE = 5.0
"""Deviations at which a picture could not be more like a text."""
SURE_LEAD = 0.06
"""The lead in cosine over the next thing at which a description is nearly certain."""
HOURS = ("by day", "at night")


@dataclass(frozen=True)
class Described:
    """The content of a picture in two clauses with their confidences from 0 to 1: the thing, and the place."""

    thing: str
    place: str
    sure_of_thing: float
    sure_of_place: float

    @property
    def text(self) -> str:
        return f"{self.thing} {self.place}".strip()


class Eyes(Protocol):
    """The sight that the rules need."""

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats: ...

    def likenesses(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats: ...

    def describe(self, jpegs: Sequence[bytes]) -> list[Described]: ...


@dataclass(frozen=True)
class Unseeing:
    """Eyes that see nothing to answer from, and describe every picture alike."""

    everywhere: str

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        return np.zeros((len(jpegs), len(texts)))

    likenesses = strengths

    def describe(self, jpegs: Sequence[bytes]) -> list[Described]:
        return [Described(self.everywhere, "", 0.5, 0.5) for _ in jpegs]


class Sight:
    """Pictures by their bytes: each is decoded and embedded once."""

    def __init__(self) -> None:
        self._texts_of, self._pictures_of = load_text_tower(DRAWN), load_image_tower(DRAWN)
        self._lock = threading.Lock()
        self._pictures: dict[str, NDArray[np.float32]] = {}
        self._texts: dict[str, NDArray[np.float32]] = {}
        self._described: dict[str, Described] = {}
        self._named = list(product(COLOUR_NAMES, THING_NAMES, PLACE_NAMES))
        phrases = [f"a {colour} {thing} {PLACES[place][0]}" for colour, thing, place in self._named]
        self._background = self._texts_of.embed_text(phrases)
        self._against: dict[str, tuple[float, float, float]] = {}

    def strengths(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        """The strength with which each picture [n] shows each text [t], in units of `SEEN`: [n, t]."""
        above, below = self._deviations(texts, jpegs)
        return (above - below) / SEEN

    def likenesses(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> Floats:
        """The likeness of each picture to each text, from 0 to 1, though it may show something else: [n, t]."""
        above, _ = self._deviations(texts, jpegs)
        return np.clip(above / ALIKE, 0.0, 1.0)

    def _deviations(self, texts: Sequence[str], jpegs: Sequence[bytes]) -> tuple[Floats, Floats]:
        """By how many deviations each cosine is above the mean of the background and below its best: [n, t] each."""
        if not texts or not jpegs:
            return np.zeros((len(jpegs), len(texts))), np.zeros((len(jpegs), len(texts)))
        pictures = self._vectors(jpegs)
        against = np.array([self._background_of(*each) for each in zip(jpegs, pictures, strict=True)])
        mean, deviation, best = against[:, :1], against[:, 1:2], against[:, 2:]
        cosines = pictures @ self._words(texts).T
        return (cosines - mean) / deviation, (best - cosines) / deviation

    def describe(self, jpegs: Sequence[bytes]) -> list[Described]:
        """Each picture in the words of the sketch world: one thing with its colour and number, the place, the hour."""
        found = []
        for jpeg, vector in zip(jpegs, self._vectors(jpegs), strict=True):
            key = _key(jpeg)
            if key not in self._described:
                self._described[key] = self._describe(vector)
            found.append(self._described[key])
        return found

    def _background_of(self, jpeg: bytes, picture: NDArray[np.float32]) -> tuple[float, float, float]:
        """Mean, deviation and the largest of a picture's cosines with the background."""
        key = _key(jpeg)
        if key not in self._against:
            cosines = self._background @ picture
            self._against[key] = float(cosines.mean()), float(cosines.std()), float(cosines.max())
        return self._against[key]

    def _describe(self, picture: NDArray[np.float32]) -> Described:
        cosines = self._background @ picture
        colour, thing, place = self._named[int(np.argmax(cosines))]
        cards = self._words([f"a title card that says {word}" for word in TITLE_WORDS]) @ picture
        if cards.max() > cosines.max():
            return Described(f"a title card that says {TITLE_WORDS[int(np.argmax(cards))]}", "", 0.8, 1.0)
        by_thing = cosines.reshape(len(COLOUR_NAMES), len(THING_NAMES), len(PLACE_NAMES)).max(axis=(0, 2))
        lead = float(by_thing.max() - np.partition(by_thing, -2)[-2])
        counted = [_counted(number, colour, thing) for number in range(1, len(NUMBERS))]
        hours = self._words([f"{PLACES[place][0]} {hour}" for hour in HOURS]) @ picture
        best = int(np.argmax(self._words([f"{text} {PLACES[place][0]}" for text in counted]) @ picture))
        sure = round(float(np.clip(0.4 + 0.6 * lead / SURE_LEAD, 0.4, 0.97)), 2)
        return Described(counted[best], f"{PLACES[place][0]} {HOURS[int(np.argmax(hours))]}", sure, 0.97)

    def _words(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._texts]
            self._texts.update(zip(new, self._texts_of.embed_text(new), strict=True))
            return np.stack([self._texts[text] for text in texts])

    def _vectors(self, jpegs: Sequence[bytes]) -> NDArray[np.float32]:
        keys = [_key(jpeg) for jpeg in jpegs]
        with self._lock:
            new = {key: jpeg for key, jpeg in zip(keys, jpegs, strict=True) if key not in self._pictures}
            if new:
                prepared = np.stack([self._pictures_of.prepare(_decoded(jpeg)) for jpeg in new.values()])
                self._pictures.update(zip(new, self._pictures_of.embed(prepared).astype(np.float32), strict=True))
            return np.stack([self._pictures[key] for key in keys])


def _counted(number: int, colour: str, thing: str) -> str:
    return f"{NUMBERS[number]} {colour} {plural(thing) if number > 1 else thing}"


def _key(jpeg: bytes) -> str:
    return hashlib.sha256(jpeg).hexdigest()


def _decoded(jpeg: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return np.asarray(picture.convert("RGB"))
