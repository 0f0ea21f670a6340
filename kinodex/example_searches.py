"""Searches to begin with: those everyday scenes that the frames of a library fit best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kinodex.index.library import LibraryReader
from kinodex.index.spaces.embedders import TextEmbedder

SCENES = Path(__file__).with_name("everyday_scenes.txt")
MOST_VIDEOS, MOST_FRAMES = 32, 256
"""Videos that are looked at, and frames of each, evenly: some milliseconds of arithmetic."""
UNLIKE = 3
ALIKE = 0.7
"""Cosine of the frames in which two scenes are seen best, from which on only one of them is an example."""


@dataclass(frozen=True, slots=True)
class Example:
    """A scene, the video in which it is seen best, and the scenes that fit that video least."""

    scene: str
    video_id: str
    unlike: tuple[str, ...]


def example_searches(library: LibraryReader, tower: TextEmbedder, most: int, space: str | None = None) -> list[Example]:
    """Choose up to `most` scenes, the one that stands out most first, each best seen in a frame of its own.

    None are chosen where no frame is, or no scene whose words the space was trained on.
    """
    trained = library.sigmoid(library.space(space), "")
    scenes = [each for each in SCENES.read_text("utf-8").splitlines() if trained is None or trained.reads(each)]
    rows = library.video_columns(("video_id", "frames")).to_pylist()
    seen = sorted(row["video_id"] for row in rows if row["frames"])
    if not scenes or not seen:
        return []
    parts, owners = [], []
    for video_id in seen[:MOST_VIDEOS]:  # ids are hashes: any of them are a sample
        vectors = library.vectors(video_id, space).vectors
        parts.append(vectors[np.linspace(0, len(vectors) - 1, min(len(vectors), MOST_FRAMES)).round().astype(int)])
        owners += [video_id] * len(parts[-1])
    frames, owner = np.concatenate(parts).astype(np.float32), np.array(owners)
    likeness = tower.embed_text(scenes) @ frames.T
    likeness -= likeness.mean(axis=0)  # of a frame that is like every scene none is typical
    chosen: dict[int, int] = {}
    for scene in np.argsort(-likeness.max(axis=1)).tolist():
        best = int(likeness[scene].argmax())
        if len(chosen) < most and all(frames[best] @ frames[other] < ALIKE for other in chosen.values()):
            chosen[scene] = best
    examples = []
    for scene, best in chosen.items():
        least = np.argsort(likeness[:, owner == owners[best]].max(axis=1))[:UNLIKE]
        examples.append(Example(scenes[scene], owners[best], tuple(scenes[at] for at in least)))
    return examples
