"""A library with everything that commands search: captions, detections and a second space."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from tests.support.libraries.random_library import add_stage, caption, detection
from tests.support.models.tiny_models import TINY, write_model


def make_described(library: Path, folder: Path) -> Path:
    """A copy of the library of drawn films with what is added; what is in it is chosen, not seen."""
    place = folder / "library"
    shutil.copytree(library, place)
    made = Library.open(str(place))
    film = made.video("film-02")
    captions = [caption(0, "a walrus plays chess"), caption(1, "nothing to be seen")]
    add_stage(made, "captions", "captioner", {film.video_id: captions})
    seen = [detection(3, "walrus", 0.9), detection(9, "walrus", 0.3)]
    add_stage(made, "detections", "detector", {film.video_id: seen})
    other = load_space(write_model(place.parent / "other", TINY))
    made.additions.add_space(other.fingerprint)
    held = made.vectors(film.video_id)
    looks = np.random.default_rng(0).integers(256, size=(film.frames, 32, 32, 3), dtype=np.uint8)
    vectors = other.embed(np.stack([other.prepare(look) for look in looks]))
    made.additions.add_vectors({film.video_id: replace(held, vectors=vectors)}, other.fingerprint)
    made.additions.complete("vectors", other.fingerprint.digest, {film.video_id: film.frames}, {})
    return place
