"""Borders of scenes and chapters of story films against their scripts: recall, precision and F1 within some seconds.

Run: python -m tests.support.scenes.measure_borders LIBRARY FOLDER, with the folder that `tests.world.sample` wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kinodex.index.library import Library
from kinodex.jobs.add.film_parts import read_film

NEAR_S = 5.0
TITLE_S = 12.0
"""A film's first scene begins after its title card, which is no border."""


def main(uri: str, folder: str) -> None:
    library = Library.open(uri)
    counts = {name: np.zeros(4, int) for name in ("scenes", "chapters", "a border each minute")}
    for video in library.videos():
        script = json.loads((Path(folder) / f"{video.title}.script.json").read_text(encoding="utf-8"))
        true_s = [start_s for scene in script["scenes"] for start_s, _ in scene["ranges"] if start_s > TITLE_S]
        film = read_film(library, video)
        for name, parts in (("scenes", film.scenes), ("chapters", film.chapters)):
            counts[name] += agreement([part.start_s for part in parts[1:]], true_s)
        counts["a border each minute"] += agreement(list(np.arange(60.0, video.duration_s, 60.0)), true_s)
    for name, (found_true, true, right, found) in counts.items():
        recall, precision = found_true / max(true, 1), right / max(found, 1)
        f1 = 2 * recall * precision / max(recall + precision, 1e-9)
        print(f"{name}: recall {found_true}/{true}, precision {right}/{found}, F1 {f1:.2f}")


def agreement(found_s: Sequence[float], true_s: Sequence[float]) -> list[int]:
    """True borders that are found, all true ones, found ones that are true, all found ones."""
    hits = sum(any(abs(true - found) <= NEAR_S for found in found_s) for true in true_s)
    right = sum(any(abs(true - found) <= NEAR_S for true in true_s) for found in found_s)
    return [hits, len(true_s), right, len(found_s)]


if __name__ == "__main__":
    main(*sys.argv[1:])
