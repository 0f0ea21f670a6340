"""A made-up library for the page: pictures that can be read, titles of its own, and completed where it was cut."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from kinodex.bench.search import video_id
from tests.bench.page import FRAMES, LINES, draw_scene, make_page_library, title_of


def test_a_library_is_completed_and_its_videos_have_pictures_lines_and_captions(tmp_path) -> None:
    told: list[int] = []
    make_page_library(str(tmp_path / "library"), 3, told.append)
    library = make_page_library(str(tmp_path / "library"), 5, told.append)
    assert told == [3, 5]
    assert {row.title for row in library.videos()} == {title_of(number) for number in range(5)}
    black, scene = library.frames(video_id(4), [0, FRAMES - 1])
    assert np.asarray(Image.open(io.BytesIO(black.jpeg))).max() < 5
    assert scene.jpeg != draw_scene(0) and Image.open(io.BytesIO(scene.jpeg)).size == (512, 288)
    assert len(library.transcript(video_id(4))) == LINES and len(library.captions(video_id(4))) == 2
