"""A library of a sketch film in the built-in space, made without a video file: each shot is drawn and embedded once."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from kinodex.index.library import Library
from kinodex.index.spaces.space import Space
from kinodex.pipeline.sample import FrameRow
from kinodex.sketch.scenes import draw
from kinodex.sketch.script import HEIGHT_PX, WIDTH_PX, Script
from tests.support.libraries.random_library import plain_row


def sketch_library(folder: Path, script: Script, space: Space) -> Library:
    """One stored frame for each second of the film."""
    library = Library.create(str(folder), {"fps": 1.0}, space.fingerprint)
    video_id = script.film.encode().hex().ljust(32, "0")[:32]
    rows = _rows(script, space)
    library.writer.add_frames({video_id: rows})
    row = plain_row(
        video_id,
        script.film,
        uri=f"{script.film}.mp4",
        duration_s=script.duration_s,
        fps=1.0,
        width_px=WIDTH_PX,
        height_px=HEIGHT_PX,
        frames=len(rows),
        space=space.name,
    )
    assert library.writer.complete([row]) == ()
    return library


def _rows(script: Script, space: Space) -> list[FrameRow]:
    rows: list[FrameRow] = []
    for number, shot in enumerate(script.shots):
        picture = draw(shot.scene, WIDTH_PX, HEIGHT_PX, number)
        vector = space.embed(space.prepare(picture)[None])[0]
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "JPEG")
        seconds = range(int(np.ceil(shot.start_s)), int(np.ceil(shot.end_s)))
        rows += [FrameRow(at, float(at), WIDTH_PX, HEIGHT_PX, file.getvalue(), vector) for at in seconds]
    return rows
