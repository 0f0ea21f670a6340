"""A library to search: three videos of random vectors with lines in four scripts, and one that is not complete."""

from __future__ import annotations

from pathlib import Path

from kinodex.index.library import Library
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

LINES = (
    (2.0, 5.0, "A dog barks at the red boat."),
    (5.0, 8.0, "The boat is red, it's said."),
    (20.0, 22.0, "Das Boot fährt über den See"),
    (30.0, 33.0, "Собака лает"),
    (40.0, 44.0, "犬が吠えている"),
)
VIDEOS = [
    made("aaaa", 120, seed=1, lines=LINES),
    made("bbbb", 200, seed=2, start_s=7.25),
    made("cccc", 80, seed=3, lines=((0.0, 3.0, "one dog"), (3.0, 6.0, "two cats"), (6.0, 9.0, "three dogs and a dog"))),
]


def make_searched(place: Path) -> Library:
    """Make the library at a place."""
    library = Library.create(str(place), SETTINGS, fingerprint())
    for video in VIDEOS:
        write(library, video)
    write(library, made("dddd", 300, seed=4, lines=((0.0, 9.0, "a dog"),)), complete=False)
    return library
