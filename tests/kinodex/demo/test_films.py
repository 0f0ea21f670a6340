"""The demo's films show what they are said to show, and every photograph has its maker and licence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinodex.demo.films import FILMS, HEIGHT_PX, PHOTOGRAPHS, SHOT_S, WIDTH_PX, shots, write_films
from kinodex.pipeline.decoding.open import open_video


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    write_films(folder)
    return folder


def small(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.resize((16, 9), Image.Resampling.BOX), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("film", FILMS)
def test_each_shot_shows_its_photograph_and_moves(film: str, made: Path) -> None:
    own = [shot for shot in shots().values() if shot.film == film]
    with open_video(made / f"{film}.mp4") as video:
        frames = [frame.frame.to_image() for frame in video.samples(1.0)]
    assert len(frames) == len(own) * SHOT_S
    assert frames[0].size == (WIDTH_PX, HEIGHT_PX)
    beginnings = {}
    for shot in shots().values():
        with Image.open(PHOTOGRAPHS / f"{shot.photograph}.jpg") as picture:
            width = min(picture.width, picture.height * WIDTH_PX / HEIGHT_PX)
            beginnings[shot.photograph] = small(picture.crop((0, 0, int(width), int(width * HEIGHT_PX / WIDTH_PX))))
    for shot in own:
        first, last = small(frames[int(shot.start_s)]), small(frames[int(shot.end_s) - 1])
        distances = {name: float(np.abs(first - each).mean()) for name, each in beginnings.items()}
        assert min(distances, key=distances.__getitem__) == shot.photograph
        assert np.abs(first - last).mean() > 5


@pytest.mark.slow
def test_films_that_are_there_stay_and_others_are_the_same_again(made: Path, tmp_path: Path) -> None:
    (tmp_path / "away.mp4").write_bytes(b"mine")
    (tmp_path / "home.mp4").write_bytes(b"mine")
    write_films(tmp_path)
    assert (tmp_path / "home.mp4").read_bytes() == b"mine"
    assert (tmp_path / "outdoors.mp4").read_bytes() == (made / "outdoors.mp4").read_bytes()


def test_every_photograph_is_shown_and_has_its_maker_and_licence() -> None:
    files = {path.stem: path for path in PHOTOGRAPHS.glob("*.jpg")}
    told = dict(
        re.findall(r"^\| `(\w+)\.jpg` \| [^|]{3,} \| ([^|]+?) \|", (PHOTOGRAPHS / "NOTICE.md").read_text(), re.M)
    )
    assert files.keys() == told.keys() == shots().keys()
    assert {licence.partition(";")[0] for licence in told.values()} == {
        "CC0 1.0",
        "CC BY 2.0",
        "CC BY 4.0",
        "public domain",
    }
    assert sum(path.stat().st_size for path in files.values()) < 700_000
    for path in files.values():
        with Image.open(path) as picture:
            assert max(picture.size) <= 512
            assert not picture.getexif()
