"""A film of several places with captions and subtitles, written without a decoder: for scenes and chapters."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, SpeechRow
from kinodex.pipeline.sample import FrameRow
from tests.support.libraries.random_library import DIM, SETTINGS, MadeVideo, add_stage, caption, fingerprint

PLACES = ("harbour", "kitchen", "forest", "station")
SHOTS, SHOT_S = 12, 5
"""Shots of each place, and seconds of each: a place lasts a minute."""


def make_film(folder: Path, *video_ids: str, described: bool = True, places: int = len(PLACES)) -> Library:
    """A library of films of four minutes, a frame a second; `described` ones have captions, and all have a line each
    ten seconds."""
    library = Library.create(str(folder), SETTINGS, fingerprint())
    for number, video_id in enumerate(video_ids):
        add_film(library, video_id, number, described, places)
    return library


def add_film(library: Library, video_id: str, seed: int, described: bool, places: int) -> None:
    chance = np.random.default_rng(seed)
    middles = chance.normal(size=(places, DIM))
    shots = np.repeat(middles, SHOTS, axis=0) + 0.3 * chance.normal(size=(places * SHOTS, DIM))
    frames = np.repeat(shots, SHOT_S, axis=0)
    vectors = (frames / np.linalg.norm(frames, axis=1, keepdims=True)).astype(np.float16)
    film = MadeVideo(video_id, vectors)
    pictures = [FrameRow(n, float(n), 64, 36, picture(n // (SHOTS * SHOT_S)), each) for n, each in enumerate(vectors)]
    library.writer.add_frames({video_id: pictures})
    spans_s = [(float(n * SHOT_S), float((n + 1) * SHOT_S)) for n in range(len(shots))]
    segments = [SegmentRow(video_id, n, *span_s, "shot") for n, span_s in enumerate(spans_s)]
    library.writer.add_segments({video_id: segments})
    lines = [
        SpeechRow(video_id, start_s + 1, start_s + 3, f"We are at the {PLACES[n // SHOTS]} now.", "sidecar", "en")
        for n, (start_s, _) in enumerate(spans_s)
        if described and n % 2
    ]
    library.writer.add_speech({video_id: lines})
    row = film.video_row(f"film {video_id}")
    assert library.writer.complete([replace(row, segments=len(segments), speech_lines=len(lines))]) == ()
    if described:
        rows = [caption(n, f"A {PLACES[n // SHOTS]}, shot {n} of {video_id}.") for n in range(len(shots))]
        for each, span_s in zip(rows, spans_s, strict=True):
            each.start_s, each.end_s = span_s
        add_stage(library, "captions", "captioner", {video_id: rows})


@cache
def picture(place: int) -> bytes:
    """A JPEG of one grey for each place."""
    encoded = io.BytesIO()
    Image.new("RGB", (64, 36), (50 * place, 50 * place, 50 * place)).save(encoded, "JPEG")
    return encoded.getvalue()
