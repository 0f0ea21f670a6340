"""Frames become upright RGB images in the colours that ffmpeg shows, and inputs with the bytes of open_clip."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.images import ModelInput, rgb_scaler
from kinodex.pipeline.tone_mapping import HLG, PQ, tone_map
from kinodex.pipeline.video_writer import encode_video, repeat_video
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg, read_whole
from tests.support.late import late

if TYPE_CHECKING:
    from av import VideoFrame

av = pytest.importorskip("av")


open_clip = late(import_open_clip)


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
    whole = rgb_scaler(Fraction(1), 320, 240, deinterlace=True)(frame)[..., 0].astype(int)
    assert whole.shape == (240, 320)
    assert np.abs(woven[1:] - woven[:-1]).mean() > 5 * np.abs(whole[1:] - whole[:-1]).mean()
    assert np.abs(whole[::2] - woven[::2]).mean() < 0.5 * np.abs(ours[::2] - woven[::2]).mean() + 1  # its own lines


def noise(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, 256, (*shape, 3), dtype=np.uint8)


@pytest.mark.slow
def test_the_same_bytes_as_open_clips_transform() -> None:
    for settings, shape in product(SETTINGS, SHAPES):
        if settings["resize_mode"] == "longest" and min(shape) / max(shape) < 0.1:
            continue  # a picture so thin has no line left, which open_clip's transform refuses
        theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), is_train=False)
        picture = Image.fromarray(noise(shape))
        for step in theirs.transforms[:-2]:
            picture = step(picture)
        made = ModelInput.from_json(json.dumps(settings))(noise(shape))
        np.testing.assert_array_equal(made, np.asarray(picture).transpose(2, 0, 1), err_msg=f"{settings} {shape}")
        assert made.flags.c_contiguous
    thin = ModelInput(64, 64, "longest", fill=7)(noise((1, 700)))
    assert (thin[:, 0] == 7).all()
    assert ModelInput(64, 64)(noise((1, 700))).shape == (3, 64, 64)


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


BT709 = 1


SIDE_PX = 64


def level(nits: float) -> int:
    """The 16-bit level of PQ that shows this many cd/m2: the inverse of ST 2084's curve, by its own formula."""
    power = (nits / 10_000) ** (2610 / 16384)
    return int(65535 * ((3424 / 4096 + 2413 / 128 * power) / (1 + 2392 / 128 * power)) ** (2523 / 32) + 0.5)


def grey(nits: float) -> int:
    shown = tone_map(np.full((1, 1, 3), level(nits), np.uint16), PQ, 9)[0, 0]
    assert np.ptp(shown) <= 1, "grey stays grey"
    return int(shown[1])


def test_greys_of_pq_and_hlg_by_their_curves() -> None:
    assert [grey(0), grey(1000), grey(4000)] == [0, 255, 255]
    for nits in (1, 26, 100, 203):
        light = nits / 100
        shown = light * (1 + light / 100) / (1 + light)
        assert grey(nits) == pytest.approx(255 * (1.055 * shown ** (1 / 2.4) - 0.055), abs=1)
    # BT.2408, table 1: HDR reference white is 75 % of HLG and 203 cd/m2, 18 % grey 38 % and 26 cd/m2.
    for part, nits in ((0.75, 203), (0.38, 26), (1.0, 1000)):
        of_hlg = tone_map(np.full((1, 1, 3), round(part * 65535), np.uint16), HLG, 9)[0, 0, 1]
        assert int(of_hlg) == pytest.approx(grey(nits), abs=3)


def film_frame(transfer: int, pixels: tuple[int, int, int] | None = None) -> VideoFrame:
    """A frame of 10 bits in BT.2020 and narrow range: a ramp of greys, or all of one Y'CbCr colour."""
    frame: VideoFrame = av.VideoFrame(SIDE_PX, SIDE_PX, "yuv420p10le")
    ramp = np.linspace(64, 940, SIDE_PX)
    values = [np.full(SIDE_PX, value) for value in pixels] if pixels else [ramp, np.full(32, 512), np.full(32, 512)]
    for plane, value in zip(frame.planes, values, strict=True):
        rows: NDArray[np.uint16] = np.zeros((plane.height, plane.line_size // 2), np.uint16)
        rows[:, : plane.width] = value[: plane.width]
        plane.update(rows.tobytes())
    frame.color_trc, frame.color_primaries, frame.colorspace, frame.color_range = transfer, 9, 9, 1
    return frame


@pytest.mark.parametrize("transfer", [PQ, HLG])
def test_colours_go_by_the_matrix_and_the_primaries_of_bt_2020(transfer: int) -> None:
    frame = film_frame(transfer, (500, 500, 540))
    luma, blue, red = (500 - 64) / 876, (500 - 512) / 896, (540 - 512) / 896
    r, b = luma + 1.4746 * red, luma + 1.8814 * blue
    g = (luma - 0.2627 * r - 0.0593 * b) / 0.6780
    expected = tone_map(np.rint(65535 * np.array([[[r, g, b]]])).astype(np.uint16), transfer, 9)[0, 0]
    shown = rgb_scaler(Fraction(1), SIDE_PX, SIDE_PX)(frame)[SIDE_PX // 2, SIDE_PX // 2]
    assert np.abs(shown.astype(int) - expected.astype(int)).max() <= 2
    assert shown[0] > shown[1] > shown[2]


def write_film(path: Path, transfer: int) -> None:
    with av.open(str(path), "w") as file:
        try:
            stream = file.add_stream("libx265", rate=2, options={"x265-params": "log-level=none"})
        except ValueError:
            pytest.skip("PyAV has no libx265")
        stream.width, stream.height, stream.pix_fmt = SIDE_PX, SIDE_PX, "yuv420p10le"
        context = stream.codec_context
        context.color_trc, context.color_primaries, context.colorspace, context.color_range = transfer, 9, 9, 1
        for number in range(4):
            frame = film_frame(transfer)
            frame.pts = number
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def test_the_picture_and_the_models_input_of_a_film_are_both_tone_mapped(tmp_path: Path) -> None:
    for name, transfer in (("hdr.mp4", PQ), ("sdr.mp4", BT709)):
        write_film(tmp_path / name, transfer)
    assert (probe(tmp_path / "hdr.mp4").hdr, probe(tmp_path / "sdr.mp4").hdr) == (True, False)
    expected = rgb_scaler(Fraction(1), SIDE_PX, SIDE_PX)(film_frame(PQ))[SIDE_PX // 2]
    whole = ModelInput(SIDE_PX, SIDE_PX, "squash")
    _, (frame, *_) = read_whole(tmp_path / "hdr.mp4", input=whole)
    picture = np.asarray(Image.open(io.BytesIO(frame.jpeg)))[SIDE_PX // 2]
    assert np.abs(frame.model_input[:, SIDE_PX // 2].T.astype(int) - expected).max() <= 6
    assert np.abs(picture.astype(int) - expected).max() <= 12
    with open_video(tmp_path / "sdr.mp4") as video:
        assert np.ptp(rgb_scaler(Fraction(1), SIDE_PX, SIDE_PX)(next(video.samples(1.0)).frame)[0, 32]) <= 1


FRAMES, FPS = 20, 10


def test_a_repeated_video_shows_every_frame_again_at_the_same_rate(tmp_path: Path, media: Path) -> None:
    pictures = [np.full((64, 128, 3), 12 * number, np.uint8) for number in range(FRAMES)]
    encode_video(pictures, tmp_path / "one.mp4", width_px=128, height_px=64, fps=FPS)
    repeat_video(tmp_path / "one.mp4", tmp_path / "three.mp4", 3)
    with open_video(tmp_path / "three.mp4") as video:
        samples = [(sample.time_s, sample.frame.to_ndarray(format="gray").mean()) for sample in video.samples(1000.0)]
        assert video.decode_errors == 0
    times_s, levels = zip(*samples, strict=True)
    assert times_s == pytest.approx([number / FPS for number in range(3 * FRAMES)])
    assert levels[FRAMES:] == pytest.approx(levels[:FRAMES] * 2, abs=3)
    with pytest.raises(ValueError, match="repeat a file of encode_video"):
        repeat_video(media / "clips" / "moviepy__big_buck_bunny_0_30.webm", tmp_path / "longer.mp4", 2)
