"""A small library of real photographs: a film that shows two of the demo's, ten seconds each, in the space photo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from kinodex.demo.films import PHOTOGRAPHS
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from kinodex.pipeline.video_writer import encode_video

WIDTH_PX, HEIGHT_PX, SHOWN_S = 320, 192, 10


def photograph_library(folder: Path, names: Sequence[str] = ("cat", "mountains")) -> Path:
    """Make the film and its library in a folder; returns the library's place."""
    shown = []
    for name in names:
        with Image.open(PHOTOGRAPHS / f"{name}.jpg") as picture:
            shown += [np.asarray(picture.resize((WIDTH_PX, HEIGHT_PX)))] * SHOWN_S
    encode_video(shown, folder / "film.mp4", width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=1)
    place = folder / "library"
    run_ingest(IngestConfig(space="photo"), list_sources([str(folder / "film.mp4")]), str(place))
    return place
