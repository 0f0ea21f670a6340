"""PQ and HLG become what an ordinary screen shows, by the curves of their standards; other frames stay as they are."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.decoding.others import reason_unfit
from kinodex.pipeline.images import HLG, PQ, ModelInput, is_hdr, rgb_scaler, tone_map
from tests.support.ffmpeg import read_whole

av = pytest.importorskip("av")
if TYPE_CHECKING:
    from av import VideoFrame

BT709 = 1
SIDE_PX = 64


def level(nits: float) -> int:
    """The 16-bit level of PQ that shows so many cd/m2: the inverse of ST 2084's curve, by its own formula."""
    power = (nits / 10_000) ** (2610 / 16384)
    return int(65535 * ((3424 / 4096 + 2413 / 128 * power) / (1 + 2392 / 128 * power)) ** (2523 / 32) + 0.5)


def grey(nits: float) -> int:
    shown = tone_map(np.full((1, 1, 3), level(nits), np.uint16), PQ, 9)[0, 0]
    assert np.ptp(shown) <= 1, "grey stays grey"
    return int(shown[1])


def test_greys_of_pq_by_the_curve() -> None:
    assert [grey(0), grey(1000), grey(4000)] == [0, 255, 255]
    for nits in (1, 26, 100, 203):
        light = nits / 100
        shown = light * (1 + light / 100) / (1 + light)
        assert grey(nits) == pytest.approx(255 * (1.055 * shown ** (1 / 2.4) - 0.055), abs=1)


def test_hlg_shows_what_pq_shows_of_the_same_light() -> None:
    """BT.2408, table 1: HDR reference white is 75 % of HLG and 203 cd/m2, 18 % grey 38 % and 26 cd/m2."""
    for part, nits in ((0.75, 203), (0.38, 26), (1.0, 1000)):
        shown = tone_map(np.full((1, 1, 3), round(part * 65535), np.uint16), HLG, 9)[0, 0, 1]
        assert int(shown) == pytest.approx(grey(nits), abs=3)


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


def test_other_frames_are_scaled_as_before() -> None:
    from av.video.reformatter import Interpolation

    frame = film_frame(BT709)
    assert not is_hdr(frame)
    flags = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
    plain = frame.reformat(format="rgb24", interpolation=flags).to_ndarray()
    assert np.array_equal(rgb_scaler(Fraction(1), SIDE_PX, SIDE_PX)(frame), plain)
    assert not np.array_equal(rgb_scaler(Fraction(1), SIDE_PX, SIDE_PX)(film_frame(PQ)), plain)


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


def test_decoders_that_make_rgb_themselves_leave_such_films_to_pyav(media: Path) -> None:
    metadata = probe(media / "clips" / "moviepy__chaplin.mp4")
    assert not metadata.hdr
    assert reason_unfit("torchcodec", metadata) is None
    for decoder in ("torchcodec", "decord", "nvdec"):
        assert "tone-mapped" in (reason_unfit(decoder, replace(metadata, hdr=True)) or "")
