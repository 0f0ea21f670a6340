"""Searches to begin with: those everyday scenes that the frames of a library fit best."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kinodex.index.library import LibraryReader
from kinodex.index.spaces.embedders import TextEmbedder

SCENES = Path(__file__).with_name("everyday_scenes.txt")
MOST_VIDEOS, MOST_FRAMES = 32, 256
"""Videos that are looked at, and frames of each, evenly: some milliseconds of arithmetic."""
APART_S = 8.0
"""Distance of the moments at which two examples of one video are seen best."""


def example_searches(library: LibraryReader, tower: TextEmbedder, most: int, space: str | None = None) -> list[str]:
    """Choose up to `most` scenes, the one that stands out most first, each best seen at another moment.

    None are chosen where no frame is, or no scene whose words the space was trained on.
    """
    trained = library.sigmoid(library.space(space), "")
    scenes = [each for each in SCENES.read_text("utf-8").splitlines() if trained is None or trained.reads(each)]
    videos = [row for row in library.videos() if row.frames][:MOST_VIDEOS]
    if not scenes or not videos:
        return []
    moments, vectors = [], []
    for row in videos:
        stored = library.vectors(row.video_id, space)
        every = np.linspace(0, len(stored.time_s) - 1, min(len(stored.time_s), MOST_FRAMES)).round().astype(int)
        moments += [(row.video_id, float(time_s)) for time_s in stored.time_s[every]]
        vectors.append(stored.vectors[every].astype(np.float32))
    likeness = tower.embed_text(scenes) @ np.concatenate(vectors).T
    likeness -= likeness.mean(axis=0)  # of a frame that is like every scene none is typical
    chosen: dict[str, tuple[str, float]] = {}
    for scene in np.argsort(-likeness.max(axis=1)):
        video, time_s = moments[int(likeness[scene].argmax())]
        if all(video != other or abs(time_s - other_s) >= APART_S for other, other_s in chosen.values()):
            chosen[scenes[scene]] = video, time_s
    return list(chosen)[:most]
