"""Lines found by their meaning alone say who speaks, as lines found by their words do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.index.library import Library
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, unit_vectors, write
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences

MODEL = ConceptModel()
PASSED = "an automobile passed"


@dataclass(frozen=True)
class Voice:
    vector: NDArray[np.float32]
    seconds: float


@dataclass(frozen=True)
class Spoken:
    start_s: float
    end_s: float
    text: str
    speaker: str | None
    language: str | None = "de"


@pytest.fixture
def library(tmp_path) -> Library:
    """A subtitle and, at the same time and later, lines of two speech models, of which the newer tells voices apart."""
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, 1, lines=((1.0, 2.0, PASSED),)))
    assert library.speakers.match([Voice(np.eye(1, 256, dtype=np.float32)[0], 4.0)], "tester", 0.8) == ["speaker-1"]
    lines = [Spoken(time_s, time_s + 1.0, PASSED, "speaker-1") for time_s in (6.0, 9.0)]
    for model, some in (("older", [replace(line, speaker="Nobody") for line in lines]), ("newer", lines)):
        library.additions.add_speech({"aaaa": some}, model)
        assert library.additions.complete("speech", model, {"aaaa": len(some)}, {}) == ()
    add_sentences(library, MODEL)
    return library


def who(hits) -> set[tuple[float, str | None, str | None]]:
    return {(hit.time_s, hit.speaker, hit.language) for hit in hits}


def test_a_line_found_by_meaning_alone_says_who_speaks_by_the_name_of_today(library):
    meaning = MODEL.meaning("car")
    found = library.search.words("car", meaning=meaning)
    assert {hit.bm25 for hit in found} == {None}
    assert who(found) == {(1.0, None, "en"), (6.0, "speaker 1", "de"), (9.0, "speaker 1", "de")}
    library.speakers.name(["speaker-1"], "Anna")
    named = {(1.0, None, "en"), (6.0, "Anna", "de"), (9.0, "Anna", "de")}
    assert who(library.search.words("car", meaning=meaning)) == named
    fused = library.search.hybrid("car", unit_vectors(1, 9)[0].astype(np.float32), meaning=meaning, k=40)
    assert {(hit.speaker, hit.language) for hit in fused if hit.text} == {(None, "en"), ("Anna", "de")}


def test_of_a_subtitle_and_a_spoken_line_that_are_equal_the_spoken_one_says_who(library):
    library.additions.add_speech({"aaaa": [Spoken(1.0, 2.0, PASSED, "speaker-1")]}, "newest")
    assert library.additions.complete("speech", "newest", {"aaaa": 1}, {}) == ()
    add_sentences(library, MODEL)
    assert who(library.search.words("car", meaning=MODEL.meaning("car"))) == {(1.0, "speaker 1", "de")}
