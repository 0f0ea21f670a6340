"""The same film without its story: its shots in random order, each as it was, with what is spoken in it."""

from __future__ import annotations

from random import Random

from jobs.synthetic.story.film import StoryFilm


def shuffle_shots(film: StoryFilm) -> StoryFilm:
    """Return the film with its shots shuffled; the same film gives the same order."""
    chance = Random(f"shuffled/{film.film}/{film.seed}")
    return film.reordered(tuple(chance.sample(film.shots, len(film.shots))), "shuffled")
