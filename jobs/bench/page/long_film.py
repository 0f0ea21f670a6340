"""A made-up film of hours with shots, lines, detections, and if one likes all that later stages add: for its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from index.library import Library
from index.rows import DetectionRow, SegmentRow, TranscriptRow
from jobs.bench.page.annotated_film import annotate
from jobs.bench.page.made_up import DIM, draw_scene
from jobs.bench.synthetic_library import (
    MODEL,
    MadeFrame,
    Size,
    frame_vectors,
    made_fingerprint,
    made_row,
    video_id,
    words,
)

SCENES, LABELS = 160, ("person", "car", "dog", "lamp", "boat", "chair", "tree", "cup", "book")
SHOT_S, LINE_EVERY_S, DETECTIONS_EVERY = 8.0, 2.5, 3
FRAMES_A_COMMIT = 2_000
SPEAKERS = ("Ada", "Ben", "speaker 3", "speaker 4")


def make_long_film(uri: str, frames: int, is_annotated: bool = False) -> Library:
    """Make a library of one film with a frame a second, or open the one that is there.

    If it `is_annotated`, its lines have speakers, and it has text on screen, captions, scenes and chapters.
    """
    kind = "long film, annotated" if is_annotated else "long film"
    library = Library.open_or_create(uri, {"kind": kind, "frames": frames}, made_fingerprint(DIM))
    name = video_id(0)
    if library.has_video(name):
        return library
    size = Size(1, frames, 0, DIM, 0)
    shots = _shots(name, frames)
    scenes = [draw_scene(number) for number in range(min(SCENES, len(shots)))]
    scene_of = np.searchsorted([each.end_s for each in shots], np.arange(frames), side="right") % len(scenes)
    vectors = frame_vectors(0, size)
    for first in range(0, frames, FRAMES_A_COMMIT):
        part = range(first, min(first + FRAMES_A_COMMIT, frames))
        rows = [MadeFrame(n, float(n), scenes[scene_of[n]], vectors[n]) for n in part]
        library.writer.add_frames({name: rows})
    said = _lines(name, frames, SPEAKERS if is_annotated else (None,))
    library.writer.add_segments({name: shots})
    library.writer.add_transcript({name: said})
    row = replace(made_row(0, size), title="A long film", segments=len(shots), transcript_lines=len(said))
    library.writer.complete([row])
    seen = _detections(name, frames)
    library.additions.add_detections({name: seen}, MODEL)
    library.additions.complete("detections", MODEL, {name: len(seen)}, {})
    if is_annotated:
        annotate(library, name)
    return library


def _shots(name: str, frames: int) -> list[SegmentRow]:
    random = np.random.default_rng(5)
    ends = np.cumsum(random.lognormal(np.log(SHOT_S), 0.7, 4 * frames // int(SHOT_S)))
    cuts = [0.0, *ends[ends < frames - 1].round(2).tolist(), float(frames)]
    return [SegmentRow(name, at, start, end, "shot") for at, (start, end) in enumerate(pairwise(cuts))]


def _lines(name: str, frames: int, speakers: Sequence[str | None]) -> list[TranscriptRow]:
    count = int(frames / LINE_EVERY_S)
    texts = words(count, seed=9)
    starts_s = [at * LINE_EVERY_S for at in range(count)]
    return [
        TranscriptRow(
            name, start_s, start_s + 2.2, f"{text} and then {text}", "sidecar", None, speakers[at % len(speakers)]
        )
        for at, (start_s, text) in enumerate(zip(starts_s, texts, strict=True))
    ]


def _detections(name: str, frames: int) -> Sequence[DetectionRow]:
    random = np.random.default_rng(6)
    rows = []
    for number in range(frames):
        for label in LABELS[: 1 + (number // 40) % len(LABELS)]:
            if random.random() < 1 / DETECTIONS_EVERY:
                continue
            x, y = random.uniform(0, 0.7, 2).round(3).tolist()
            rows.append(DetectionRow(name, number, float(number), label, 0.8, (x, y, x + 0.2, y + 0.25), None, MODEL))
    return rows
