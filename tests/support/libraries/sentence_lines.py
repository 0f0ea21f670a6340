"""Sentences for libraries of tests, by a model that knows a few concepts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.likeness import Likeness
from kinodex.index.spaces.sentence_facts import ModelFacts
from kinodex.index.spaces.sentence_tower import SentenceEmbedder

CONCEPTS = ({"car", "automobile"}, {"dog", "hound", "puppy"}, {"snow", "blizzard"}, {"boat", "ship", "vessel"})
CHANCE = Likeness(0.0, 0.05)


class ConceptModel:
    """Embeds a text as the concepts whose words it has, with a little of chance."""

    def __init__(self, name: str = "concepts", dim: int = 32) -> None:
        facts = ModelFacts("mean", 64, "", "", "[PAD]")
        self.space = Fingerprint(name, "0123456789ab", name.ljust(64, "0"), facts.as_json(), dim)

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.space.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.space.dim - len(CONCEPTS))
            row[len(CONCEPTS) :] = noise / np.linalg.norm(noise) * 0.5
            row[: len(CONCEPTS)] = [bool(words & set(text.lower().split())) for words in CONCEPTS]
        units: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return units

    embed_lines = embed_texts

    def meaning(self, text: str, least: float = 0.5) -> Meaning:
        return Meaning(self.embed_texts([text])[0], self.space, least)


def add_sentences(library: Library, model: SentenceEmbedder, *video_ids: str) -> None:
    """Add the stage "sentences" to videos, or to those that lack it or are outdated."""
    library.sentences.add_space(model.space, CHANCE)
    digest = model.space.digest
    lacking = [row.video_id for row in library.additions.pending("sentences", digest)]
    for video_id in video_ids or (*lacking, *library.sentences.outdated(model.space)):
        library.additions.discard("sentences", digest, video_id)
        lines = library.sentences.lines(video_id)
        library.sentences.add({video_id: (lines, model.embed_lines([line.text for line in lines]))}, model.space)
        assert library.additions.complete("sentences", digest, {video_id: len(lines)}, {}) == ()
