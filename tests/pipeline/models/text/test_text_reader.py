"""Text read from real pictures by the carried weights, and models that cannot be used."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from itertools import pairwise

import pytest
from PIL import Image, ImageDraw, ImageFont

from kinodex.pipeline.errors import ModelMissing, WrongModel
from kinodex.pipeline.models.screen_text import BAND_PX, CARRIED, OVERLAP_PX, bands, find_text_model, load_text_reader

pytestmark = pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra `text` is not installed")


@pytest.fixture(scope="module")
def reader():
    return load_text_reader(CARRIED, ["en"], 0.5)


def picture(*lines: str, size: tuple[int, int] = (480, 270)) -> Image.Image:
    """Draw lines of text, one below the other, white on blue."""
    made = Image.new("RGB", size, (20, 30, 90))
    for number, text in enumerate(lines):
        ImageDraw.Draw(made).text((40, 40 + 90 * number), text, "white", ImageFont.load_default(36))
    return made


def test_lines_are_read_from_top_to_bottom_with_boxes_in_parts_of_the_picture(reader):
    first, second = reader.read(picture("Platform 13", "to the harbour"))
    assert (first.text, second.text) == ("Platform 13", "to the harbour")
    assert first.confidence > 0.9
    x0, y0, x1, y1 = first.box
    assert 0.03 < x0 < 0.1 and 0.3 < x1 < 0.6  # drawn from 40 px of 480 on
    assert 0.1 < y0 < 0.25 < y1 < 0.4 < second.box[1]


def test_nothing_is_read_where_there_is_nothing(reader):
    assert reader.read(picture()) == []
    assert reader.read(Image.new("RGB", (20, 20), "white")) == []
    assert reader.read(picture("Y")) == []


def test_small_and_large_print_of_a_large_picture_are_read_once_each(reader):
    large = Image.new("RGB", (1920, 1080), (20, 30, 90))
    draw = ImageDraw.Draw(large)
    draw.text((160, 180), "Registered office: 7 Harbour Street", "white", ImageFont.load_default(14))
    draw.text((300, 420), "HARBOUR", "white", ImageFont.load_default(240))  # over the edge of two bands
    small, title = reader.read(large)
    assert (small.text, title.text) == ("Registered office: 7 Harbour Street", "HARBOUR")
    assert small.box[1] == pytest.approx(180 / 1080, abs=0.01)
    assert title.box[1] < 0.5 < title.box[3]


@pytest.mark.parametrize("height_px", [737, 1080, 1920, 3000])
def test_bands_cover_a_picture_and_overlap(height_px):
    parts = bands(height_px)
    assert parts[0][0] == 0 and parts[-1][1] == height_px
    assert all(below[0] == above[1] - OVERLAP_PX for above, below in pairwise(parts))
    assert all(bottom - top <= BAND_PX + OVERLAP_PX for top, bottom in parts)


def test_readings_below_the_least_confidence_are_left_out(reader):
    sure = load_text_reader(CARRIED, (), 1.0)
    assert reader.read(picture("Platform 13"))
    assert all(each.confidence == 1.0 for each in sure.read(picture("Platform 13")))


def test_a_folder_with_a_recogniser_is_read_with_the_carried_detector(tmp_path):
    carried = find_text_model()
    shutil.copy(carried.recogniser, tmp_path / "my_rec.onnx")
    found = find_text_model(str(tmp_path))
    assert (found.detector, found.recogniser) == (carried.detector, tmp_path / "my_rec.onnx")
    (reading,) = load_text_reader(str(tmp_path)).read(picture("Platform 13"))
    assert reading.text == "Platform 13"


def test_a_language_that_the_carried_weights_do_not_read_is_refused():
    with pytest.raises(WrongModel, match=r"'ko', whose letters PP-OCRv6-small does not read; it reads .*de.*ja.*zh"):
        load_text_reader(CARRIED, ["en", "ko"])


def test_a_folder_without_a_recogniser_or_with_two_is_refused(tmp_path):
    with pytest.raises(ModelMissing, match=r"which holds no \*rec\*.onnx"):
        find_text_model(str(tmp_path))
    for name in ("a_rec.onnx", "b_rec.onnx"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(ModelMissing, match="2 files"):
        find_text_model(str(tmp_path))
    with pytest.raises(ModelMissing, match="got nobody/nothing, which is no folder; give PP-OCRv6-small"):
        find_text_model("nobody/nothing")


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "broken_rec.onnx").write_bytes(b"no model")
    with pytest.raises(WrongModel, match="no ONNX model"):
        load_text_reader(str(tmp_path))


def test_a_recogniser_without_characters_asks_for_them(tmp_path):
    shutil.copy(find_text_model().detector, tmp_path / "no_characters_rec.onnx")
    with pytest.raises(WrongModel, match="holds no list of its characters"):
        load_text_reader(str(tmp_path))


@pytest.mark.parametrize(("name", "kind"), [("a_rec.onnx", "a recogniser of text"), ("a_det.onnx", "a detector")])
def test_a_model_of_another_kind_is_refused_before_it_reads(tmp_path, name, kind):
    carried = find_text_model()
    shutil.copy(carried.recogniser, tmp_path / "rec.onnx")
    (tmp_path / "characters.txt").write_text("a\nb\n")
    if name == "a_rec.onnx":
        (tmp_path / "rec.onnx").unlink()
        shutil.copy(carried.detector, tmp_path / name)
    else:
        shutil.copy(carried.detector.with_name("ch_ppocr_mobile_v2.0_cls_mobile.onnx"), tmp_path / name)
    with pytest.raises(WrongModel, match=f"{name} is not {kind}"):
        load_text_reader(str(tmp_path))


@pytest.mark.parametrize(
    ("characters", "message"), [(b"a\nb\n", "18710 classes apart, and its list has 2"), (b"\xff\n", "no text in UTF-8")]
)
def test_characters_of_another_recogniser_are_refused(tmp_path, characters, message):
    bare = find_text_model().recogniser.read_bytes().replace(b"character", b"chbracter")  # no characters in it
    (tmp_path / "rec.onnx").write_bytes(bare)
    (tmp_path / "characters.txt").write_bytes(characters)
    with pytest.raises(WrongModel, match=message):
        load_text_reader(str(tmp_path))
