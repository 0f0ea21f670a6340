"""Text read from pictures by the carried weights, and lines of it with their times; models that cannot be used."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from itertools import pairwise

import pytest
from PIL import Image, ImageDraw, ImageFont

from kinodex.pipeline.errors import ModelMissing, WrongModel
from kinodex.pipeline.models.screen_text.lines import join_readings
from kinodex.pipeline.models.screen_text.reader import (
    BAND_PX,
    CARRIED,
    OVERLAP_PX,
    Reading,
    bands,
    find_text_model,
    load_text_reader,
)
from kinodex.pipeline.models.screen_text.scripts import LANGUAGES, check_languages

needs_rapidocr = pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra `text` is not installed")
LATIN, RUSSIAN = "abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрст"
LOW, HIGH = (0.1, 0.8, 0.5, 0.9), (0.1, 0.1, 0.5, 0.2)


def test_languages_that_a_model_does_not_read_are_refused_with_those_it_reads():
    check_languages(["en", "ru"], LATIN + RUSSIAN, "m")
    check_languages([], "", "m")
    refused = r"got language 'ko', whose letters m does not read; it reads .*en.*ru.*--model"
    with pytest.raises(WrongModel, match=refused):
        check_languages(["en", "ko"], LATIN + RUSSIAN + "한", "m")
    with pytest.raises(WrongModel, match="got language 'english'; give codes of two letters, of af, ar"):
        check_languages(["english"], LATIN, "m")
    assert all(len(code) == 2 for code in LANGUAGES)


def lines(*frames, times_s=None, end_s=None):
    """Join frames of texts, or of readings, a second apart unless `times_s` says otherwise: start, end and text."""
    readings = [[each if isinstance(each, Reading) else Reading(each, 0.95, LOW) for each in frame] for frame in frames]
    times_s = times_s or [float(number) for number in range(len(frames))]
    found = join_readings(readings, times_s, end_s or float(len(frames)))
    return [(line.start_s, line.end_s, line.text) for line in found]


def test_a_caption_that_stands_is_one_line_up_to_the_first_frame_without_it():
    assert lines([], ["Hello"], ["Hello"], ["Hello"], [], [], []) == [(1.0, 4.0, "Hello")]
    assert lines([], ["Hello"], end_s=9.5) == [(1.0, 9.5, "Hello")], "the last line ends with the video"
    assert lines(["Hello"], [], times_s=[2.0, 31.0], end_s=40.0) == [(2.0, 31.0, "Hello")], (
        "a picture that stands still"
    )
    assert lines(["Hello"], [], [], ["Hello"]) == [(0.0, 1.0, "Hello"), (3.0, 4.0, "Hello")]
    assert lines(["Hello"], [], ["Hello"]) == [(0.0, 3.0, "Hello")], "one frame that was overlooked"
    standing = lines(["Hello"], [], ["Hello"], times_s=[0.0, 1.0, 20.0], end_s=21.0)
    assert standing == [(0.0, 1.0, "Hello"), (20.0, 21.0, "Hello")], "but not a long one"
    assert lines() == lines([]) == []


def test_small_differences_between_frames_are_one_line_and_others_are_two():
    for other in ("Brand0n Castellano", "Brandon  Castellano.", "Brandon Castelano"):
        found = lines(["Brandon Castellano"], ["Brandon Castellano"], [Reading(other, 0.7, LOW)])
        assert found == [(0.0, 3.0, "Brandon Castellano")], other
    for one, other in (("Good morning", "See you soon"), ("Lap 12", "Lap 13"), ("की कि", "का के")):
        assert lines([one], [other]) == [(0.0, 1.0, one), (1.0, 2.0, other)]
    assert lines(["Lap 12"], ["Lap 12"], [Reading("Lap 18", 0.6, LOW)]) == [(0.0, 3.0, "Lap 12")]


@pytest.fixture(scope="module")
def reader():
    return load_text_reader(CARRIED, ["en"], 0.5)


def picture(*lines: str, size: tuple[int, int] = (480, 270)) -> Image.Image:
    """Draw lines of text, one below the other, white on blue."""
    made = Image.new("RGB", size, (20, 30, 90))
    for number, text in enumerate(lines):
        ImageDraw.Draw(made).text((40, 40 + 90 * number), text, "white", ImageFont.load_default(36))
    return made


@pytest.mark.slow
@needs_rapidocr
def test_lines_are_read_from_top_to_bottom_with_boxes_in_parts_of_the_picture(reader):
    first, second = reader.read(picture("Platform 13", "to the harbour"))
    assert (first.text, second.text) == ("Platform 13", "to the harbour")
    assert first.confidence > 0.9
    x0, y0, x1, y1 = first.box
    assert 0.03 < x0 < 0.1 and 0.3 < x1 < 0.6  # drawn from 40 px of 480 on
    assert 0.1 < y0 < 0.25 < y1 < 0.4 < second.box[1]
    for nothing in (picture(), Image.new("RGB", (20, 20), "white"), picture("Y")):
        assert reader.read(nothing) == []
    sure = load_text_reader(CARRIED, (), 1.0)
    assert all(each.confidence == 1.0 for each in sure.read(picture("Platform 13")))


@pytest.mark.slow
@needs_rapidocr
def test_small_and_large_print_of_a_large_picture_are_read_once_each(reader):
    large = Image.new("RGB", (1920, 1080), (20, 30, 90))
    draw = ImageDraw.Draw(large)
    draw.text((160, 180), "Registered office: 7 Harbour Street", "white", ImageFont.load_default(14))
    draw.text((300, 420), "HARBOUR", "white", ImageFont.load_default(240))  # over the edge of two bands
    small, title = reader.read(large)
    assert (small.text, title.text) == ("Registered office: 7 Harbour Street", "HARBOUR")
    assert small.box[1] == pytest.approx(180 / 1080, abs=0.01)
    assert title.box[1] < 0.5 < title.box[3]
    for height_px in (737, 1080, 1920, 3000):
        parts = bands(height_px)
        assert parts[0][0] == 0 and parts[-1][1] == height_px
        assert all(below[0] == above[1] - OVERLAP_PX for above, below in pairwise(parts)), height_px
        assert all(bottom - top <= BAND_PX + OVERLAP_PX for top, bottom in parts), height_px


@needs_rapidocr
def test_a_folder_with_a_recogniser_is_read_with_the_carried_detector(tmp_path):
    carried = find_text_model()
    shutil.copy(carried.recogniser, tmp_path / "my_rec.onnx")
    found = find_text_model(str(tmp_path))
    assert (found.detector, found.recogniser) == (carried.detector, tmp_path / "my_rec.onnx")
    (reading,) = load_text_reader(str(tmp_path)).read(picture("Platform 13"))
    assert reading.text == "Platform 13"


@pytest.mark.slow
@needs_rapidocr
def test_models_that_cannot_be_used_are_refused_before_they_read(tmp_path):
    with pytest.raises(WrongModel, match=r"'ko', whose letters PP-OCRv6-small does not read; it reads .*de.*ja.*zh"):
        load_text_reader(CARRIED, ["en", "ko"])
    with pytest.raises(ModelMissing, match="got nobody/nothing, which is no folder; give PP-OCRv6-small"):
        find_text_model("nobody/nothing")
    carried = find_text_model()
    rec, det = carried.recogniser.read_bytes(), carried.detector.read_bytes()
    directions = carried.detector.with_name("ch_ppocr_mobile_v2.0_cls_mobile.onnx").read_bytes()
    bare = rec.replace(b"character", b"chbracter")  # no characters in it
    for number, (files, error, message) in enumerate((
        ({}, ModelMissing, r"which holds no \*rec\*.onnx"),
        ({"a_rec.onnx": b"", "b_rec.onnx": b""}, ModelMissing, "2 files"),
        ({"broken_rec.onnx": b"no model"}, WrongModel, "no ONNX model"),
        ({"no_characters_rec.onnx": det}, WrongModel, "holds no list of its characters"),
        ({"a_rec.onnx": det, "characters.txt": b"a\nb\n"}, WrongModel, "a_rec.onnx is not a recogniser of text"),
        ({"rec.onnx": rec, "a_det.onnx": directions}, WrongModel, "a_det.onnx is not a detector"),
        ({"rec.onnx": bare, "characters.txt": b"a\nb\n"}, WrongModel, "18710 classes apart, and its list has 2"),
        ({"rec.onnx": bare, "characters.txt": b"\xff\n"}, WrongModel, "no text in UTF-8"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        with pytest.raises(error, match=message):
            load_text_reader(str(folder))
