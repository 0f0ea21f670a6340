"""Pixels that change their shape on the way: stored pictures and clips have the shape that a player shows then."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.media.clip_encoding import encode_ranges
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg, read_whole

PART_S = 4


@pytest.fixture(scope="module", params=["joined", "on one clock"])
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broadcast in 4:3, then in 16:9, at one size; with one clock, or joined of two with their own."""
    folder = tmp_path_factory.mktemp("shapes")
    parts = []
    for number, shape in enumerate(("4/3", "16/9")):
        part = folder / f"{number}.ts"
        pictures = ("-f", "lavfi", "-i", f"testsrc=s=720x576:r=25:d={PART_S}", "-vf", f"setdar={shape}")
        offset_s = 10 + number * PART_S * (request.param != "joined")
        ffmpeg(*pictures, "-c:v", "mpeg2video", "-bf", "2", "-g", "12", "-output_ts_offset", str(offset_s), part)
        parts.append(part.read_bytes())
    path = folder / "film.ts"
    path.write_bytes(b"".join(parts))
    return path


@needs_ffmpeg
def test_each_picture_has_the_shape_of_its_time(film: Path, tmp_path: Path) -> None:
    _, frames = read_whole(film, fps=25.0)
    shapes = [(each.width_px, each.height_px) for each in frames]
    assert len(shapes) == pytest.approx(2 * PART_S * 25, abs=3)
    changed = shapes.index((512, 288))
    assert set(shapes[:changed]) == {(512, 384)} and set(shapes[changed:]) == {(512, 288)}
    assert changed == pytest.approx(PART_S * 25, abs=3)
    with open_video(film) as video:
        from_s = video.start_s + PART_S + 1
    encode_ranges(film, "film", tmp_path / "clip.mp4", [(from_s, from_s + 1)])
    with av.open(str(tmp_path / "clip.mp4")) as clip:
        size = clip.streams.video[0]
        assert (size.width, size.height) == (1024, 576)
