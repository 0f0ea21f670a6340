"""Score the built-in model on frames of story films: does a name find the frames in which the thing is?

Story frames have up to eight things, some of them small, held by others or half hidden; the model was trained on scenes
of at most three that stand apart. It is loaded through open_clip's own loading, like any checkpoint.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.sketch.score import FloatArray, Towers, load_towers, score
from tests.sketch.vocabulary import PLACES, with_article
from tests.world.drawn_space import CHECKPOINT
from tests.world.sketch.script import FPS
from tests.world.story import ACTORS, ASPECT, ITEMS, StoryFilm, StoryScene, View, draw_frames, position, write_story

EVERY_S = 3.0
LEAST_SIDE = 0.06
"""A thing less than this part of the frame's height counts as not yet visible, and its frame for neither side."""
Truth = dict[tuple[str, str], set[int]]
"""The frames in which each is seen, by its role and name."""


def score_story(folder: Path, *, films: int = 2, duration_s: float = 900.0, seed: int = 977) -> dict[str, Any]:
    """Score names of things, places and title cards, each against all frames of its film, one in three seconds.

    For each role: `recall_at_1` and `recall_at_5`, the share of names for which the best frame, or one of the best
    five, shows the thing; `auc`, the mean over names of the chance that a frame with the thing scores above one without
    it; and the number of names.
    """
    towers = load_towers(folder)
    found: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
    for number in range(films):
        film = write_story(f"score-{number}", duration_s, seed)
        gallery = _gallery(film, towers)
        truth = frames_with(film)
        names = sorted(truth)
        texts = towers.embed_texts([_prompt(role, name) for role, name in names])
        for (role, name), scores in zip(names, texts @ gallery.T, strict=True):
            result = _ranked(scores, truth[role, name])
            if result is not None:
                found[role].append(result)
    return {role: _summary(results) for role, results in sorted(found.items())}


def _summary(results: list[tuple[bool, bool, float]]) -> dict[str, float]:
    first, five, auc = (round(float(np.mean(each)), 4) for each in zip(*results, strict=True))
    return {"names": len(results), "recall_at_1": first, "recall_at_5": five, "auc": auc}


def _ranked(scores: FloatArray, shown: set[int]) -> tuple[bool, bool, float] | None:
    """Find whether the best and the best five frames show a thing, and the area under the curve."""
    relevant = np.zeros(len(scores), bool)
    relevant[list(shown)] = True
    if not 0 < relevant.sum() < len(scores):
        return None
    best = np.argsort(-scores)
    rank = np.empty(len(scores))
    rank[best[::-1]] = np.arange(1, len(scores) + 1)
    many, rest = relevant.sum(), (~relevant).sum()
    auc = float((rank[relevant].sum() - many * (many + 1) / 2) / (many * rest))
    return bool(relevant[best[0]]), bool(relevant[best[:5]].any()), auc


def frames_with(film: StoryFilm) -> Truth:
    """List for everything in a film the numbers of the frames, one in `EVERY_S`, in which it is seen."""
    truth: Truth = defaultdict(set)
    step = round(EVERY_S * FPS)
    for shot in film.shots:
        first = -(-shot.first_frame // step)
        for number in range(first, -(-(shot.first_frame + shot.frames) // step)):
            if shot.card is not None:
                truth["title card", shot.card.word].add(number)
            elif shot.scene is not None:
                scene = film.scenes[shot.scene]
                truth["place", scene.setting.place].add(number)
                for role, name in _visible(scene, number * step / FPS, shot.view):
                    truth[role, name].add(number)
    return dict(truth)


def _visible(scene: StoryScene, time_s: float, view: View) -> list[tuple[str, str]]:
    """List what is on stage at a time, at least half of it in the view and not too small."""
    visible = []
    for track in scene.tracks:
        key = position(track, time_s)
        if key is None or key.side / view.width < LEAST_SIDE:
            continue
        half = key.side / ASPECT / 2
        inside = min(key.x + half, view.left + view.width) - max(key.x - half, view.left)
        if inside >= half:
            thing = track.prop.thing
            role = "actor" if thing in ACTORS else "item" if thing in ITEMS else "passer"
            visible.append((role, track.prop.name))
    return visible


def _prompt(role: str, name: str) -> str:
    if role == "place":
        return PLACES[name][0]
    return f"a title card that says {name}" if role == "title card" else with_article(name)


def _gallery(film: StoryFilm, towers: Towers) -> FloatArray:
    """Embed one frame in `EVERY_S` of a film, in the order of time: [frames, dim]."""
    pictures = [_squashed(frame, towers.side_px) for frame in draw_frames(film, round(EVERY_S * FPS))]
    return towers.embed_pictures(np.stack(pictures))


def _squashed(frame: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(frame).resize((side_px, side_px), Image.Resampling.BICUBIC, reducing_gap=3.0))


def main() -> None:
    """Print the scores of the weights in a folder, of combinations they were not trained on too."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=CHECKPOINT)
    folder = parser.parse_args().folder
    print(json.dumps({"combinations": score(folder), "story films": score_story(folder)}, indent=1))


if __name__ == "__main__":
    main()
