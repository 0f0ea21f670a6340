"""Decoded frames become upright RGB images in the colours that ffmpeg shows, and inputs with the bytes of open_clip."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.index.spaces.space import import_open_clip
from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.images import ModelInput, rgb_scaler
from tests.support.ffmpeg import ffmpeg, ffmpeg_shows, needs_ffmpeg, psnr_db

open_clip = import_open_clip()

SHAPES = [(288, 512), (512, 288), (97, 511), (144, 193), (31, 30), (64, 64), (40, 300), (1, 7), (224, 224), (225, 224)]
SETTINGS: list[dict[str, Any]] = [
    {"size": size, "resize_mode": mode, "interpolation": interpolation, "fill_color": fill}
    for size in (224, 37, (64, 96), [96, 65])
    for mode, interpolation, fill in [
        ("shortest", "bicubic", 0),
        ("shortest", "bilinear", 0),
        ("longest", "bicubic", 0),
        ("longest", "bilinear", 128),
        ("squash", "bicubic", 0),
        ("squash", "bilinear", 0),
        (None, None, 0),
    ]
]


@needs_ffmpeg
@pytest.mark.parametrize(("codec", "pix_fmt"), [("qtrle", "argb"), ("prores_ks", "yuva444p10le"), ("png", "rgba")])
def test_transparent_pixels_lie_over_black(tmp_path: Path, codec: str, pix_fmt: str) -> None:
    path = tmp_path / "clear.mov"
    ffmpeg("-f", "lavfi", "-i", "color=white:size=64x64:rate=5:duration=1,format=rgba,"
           "geq=r=255:g=255:b=255:a='if(lt(X,32),255,0)'", "-c:v", codec, "-pix_fmt", pix_fmt, path)  # fmt: skip
    with open_video(path) as video:
        rgb = rgb_scaler(Fraction(1), 64, 64)(next(video.samples(1)).frame)
    assert rgb[:, :28].min() > 245
    assert rgb[:, 36:].max() < 10


@needs_ffmpeg
def test_interlaced_frames_do_not_comb(tmp_path: Path) -> None:
    """A white bar that moves between two fields: woven, every second line would differ at its edge."""
    path = tmp_path / "interlaced.mpg"
    moving = "color=black:size=320x240:rate=50:duration=2,drawbox=x='0':y=0:w=40:h=240:c=white:t=fill"
    ffmpeg("-f", "lavfi", "-i", f"{moving},scroll=horizontal=-0.1,tinterlace=interleave_top,fieldorder=tff",
           "-c:v", "mpeg2video", "-flags", "+ilme+ildct", "-top", "1", "-q:v", "2", path)  # fmt: skip
    with open_video(path) as video:
        assert video.metadata.interlaced
        samples = [(s.time_s, s.frame) for s in video.samples(5)]
    frame = samples[3][1]
    woven = frame.to_ndarray(format="gray").astype(int)
    ours = rgb_scaler(Fraction(1), 320, 240)(frame)[..., 0].astype(int)
    assert ours.shape == (240, 320)
    assert np.abs(woven[1:] - woven[:-1]).mean() > 5 * np.abs(ours[1:] - ours[:-1]).mean()


@needs_ffmpeg
@pytest.mark.parametrize(("flips", "matrix"), [("hflip", (-1, 0, 0, 1)), ("vflip", (1, 0, 0, -1))])
def test_mirrored_pictures_are_set_right(
    media: Path, tmp_path: Path, flips: str, matrix: tuple[int, int, int, int]
) -> None:
    clip, mirrored = media / "clips" / "pixeltable__bangkok_half_res.mp4", tmp_path / "mirrored.mp4"
    data = bytearray(clip.read_bytes())
    header = data.index(b"tkhd")
    at = header + 4 + 40 if data[header + 4] == 0 else header + 4 + 52
    for place, value in zip((0, 4, 12, 16), matrix, strict=True):
        data[at + place : at + place + 4] = (value << 16).to_bytes(4, "big", signed=True)
    mirrored.write_bytes(data)
    with open_video(clip) as video:
        plain = rgb_scaler(Fraction(1), 320, 1)(next(video.samples(1)).frame)
    with open_video(mirrored) as video:
        ours = rgb_scaler(Fraction(1), 320, 1)(next(video.samples(1)).frame)
    assert np.array_equal(ours, plain[:, ::-1] if flips == "hflip" else plain[::-1])


@needs_ffmpeg
@pytest.mark.parametrize("pix_fmt", ["yuv420p10le", "yuv444p", "yuv422p12le", "gray", "gbrp", "yuvj420p"])
def test_pixel_formats_give_the_colours_of_ffmpeg(tmp_path: Path, pix_fmt: str) -> None:
    path = tmp_path / "made.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=1:duration=1", "-c:v", "ffv1", "-pix_fmt", pix_fmt, path)
    with open_video(path) as video:
        ours = rgb_scaler(Fraction(1), 160, 1)(next(video.samples(1)).frame)
    assert psnr_db(ours, ffmpeg_shows(path, 0, 1, 160, 120)[0]) > 40


def noise(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 256, (*shape, 3), dtype=np.uint8)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(str(value) for value in s.values()))
def test_the_same_bytes_as_open_clips_transform(settings: dict[str, Any]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), is_train=False)
    ours = ModelInput.from_json(json.dumps(settings))
    for shape in SHAPES:
        rgb = noise(shape)
        picture = Image.fromarray(rgb)
        if settings["resize_mode"] == "longest" and min(shape) / max(shape) < 0.1:
            continue  # a picture so thin has no line left, which open_clip's transform refuses
        for step in theirs.transforms[:-2]:
            picture = step(picture)
        made = ours(rgb)
        np.testing.assert_array_equal(made, np.asarray(picture).transpose(2, 0, 1), err_msg=str(shape))
        assert made.flags.c_contiguous


def test_the_preprocessing_of_every_model_that_open_clip_knows() -> None:
    known = {
        json.dumps(open_clip.get_pretrained_cfg(model, tag) | {"url": ""}, default=list, sort_keys=True)
        for model, tag in open_clip.list_pretrained()
    }
    assert len(known) > 5
    for each in known:
        settings = {name: value for name, value in json.loads(each).items() if name in ("interpolation", "resize_mode")}
        made = ModelInput.from_json(json.dumps({"size": 64} | settings))
        assert made(noise((50, 70))).shape == (3, 64, 64)


def test_what_a_thin_picture_gives() -> None:
    made = ModelInput(64, 64, "longest", fill=7)(noise((1, 700)))
    assert (made[:, 0] == 7).all()
    assert ModelInput(64, 64)(noise((1, 700))).shape == (3, 64, 64)


def test_it_travels_and_needs_no_torch(root: Path) -> None:
    made = ModelInput.from_json('{"size": [64, 96], "resize_mode": "squash"}')
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.side_px == 96
    script = "import sys, kinodex.pipeline.images; print([name for name in sys.modules if 'torch' in name])"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
