"""Read the text in a picture with RapidOCR, which runs the PP-OCR models of PaddleOCR on the CPU.

Lines are found by DB (Liao et al. 2019, arXiv 1911.08947) and read by CTC, each by itself. The package carries the
weights of PP-OCRv6 small: Latin script, Chinese and Japanese. Others are a folder with a recogniser, and a detector
if there is one; the files are given by their paths, so nothing is fetched from a hub.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinodex.pipeline.errors import ModelMissing, WrongModel
from kinodex.pipeline.models.boxes import Box, has_area
from kinodex.pipeline.models.screen_text.scripts import LANGUAGES, check_languages, script_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL.Image import Image

CARRIED = "PP-OCRv6-small"
"""Name of the weights that rapidocr carries."""
CARRIED_FILES = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")
MOST_SIDE_PX = 2000
"""Longer sides are scaled down; nothing is enlarged: that took 3 to 7 times as long and read no more (measured)."""
LEAST_SIDE_PX = 32
WHOLE_PX, BAND_PX, OVERLAP_PX = 736, 420, 120
"""A higher picture is read small as a whole, and in bands of its full width: in a large picture the detector overlooks
small print that it finds in a part of it. What a band's edge cuts is whole in the next band or in the small picture."""
EDGE = 0.005
SAME_PLACE = 0.5
"""Part of the smaller of two boxes that lies in the other one where both are of one line."""
DETECTOR_INPUT, RECOGNISER_INPUT = (1, 3, 64, 64), (1, 3, 48, 64)
SPECIAL_CLASSES = (1, 2)
"""Classes of a recogniser beside its characters: no letter, and mostly a blank."""
LIBRARY_PATH = "LD_LIBRARY_PATH"


class Reading(NamedTuple):
    """One line of text in one picture; `confidence` is the mean of its letters', 0 to 1."""

    text: str
    confidence: float
    box: Box


@dataclass(frozen=True, slots=True)
class TextModel:
    """Files of a reader of text; `characters` is a file of them, a line each, where the recogniser holds none."""

    name: str
    detector: Path
    recogniser: Path
    characters: Path | None = None


class TextReader:
    """A loaded reader. With `languages`, letters of other scripts than theirs are left out of what is read."""

    def __init__(self, engine: Any, languages: Sequence[str], min_confidence: float) -> None:
        self._engine = engine
        self._scripts = {"LATIN"}.union(*(LANGUAGES[each] for each in languages)) if languages else None
        self._min_confidence = min_confidence

    def read(self, picture: Image) -> list[Reading]:
        """Read the lines of a picture, from top to bottom; of at least `min_confidence` and two letters or digits.

        Most single letters that are read are none: a branch, a window, two stripes (measured).
        """
        if picture.height <= WHOLE_PX:
            return self._read_part(picture)
        small = picture.copy()
        small.thumbnail((MOST_SIDE_PX, WHOLE_PX))
        found = self._read_part(small)
        for top, bottom in bands(picture.height):
            cut = (top / picture.height, bottom / picture.height)
            part = self._read_part(picture.crop((0, top, picture.width, bottom)))
            found += [moved for each in part if (moved := _in_whole(each, *cut)) is not None]
        return _best_of_each(found)

    def _read_part(self, picture: Image) -> list[Reading]:
        if min(picture.size) < LEAST_SIDE_PX:
            return []
        bgr = np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])
        found = self._engine(bgr)
        if found.txts is None or found.boxes is None:
            return []
        lines = zip(found.txts, found.scores, found.boxes, strict=True)
        readings = [
            Reading(self._clean(text), min(float(score), 1.0), _box(corners, picture.size))
            for text, score, corners in lines
            if score >= self._min_confidence
        ]
        return [each for each in readings if sum(map(str.isalnum, each.text)) > 1 and has_area(each.box)]

    def _clean(self, text: str) -> str:
        """Full-width forms become plain ones and white space single blanks."""
        plain = unicodedata.normalize("NFKC", text)
        if self._scripts is not None:
            plain = "".join(each for each in plain if script_of(each) in self._scripts or not each.isalpha())
        return " ".join(plain.split())


def find_text_model(name: str = CARRIED) -> TextModel:
    """Find the files of the carried model, or a folder's: *rec*.onnx, *det*.onnx, *.txt; raises ModelMissing."""
    package = Path(str(_rapidocr().__file__)).parent
    carried = [package / "models" / each for each in CARRIED_FILES]
    if name == CARRIED:
        missing = [path.name for path in carried if not path.is_file()]
        if missing:
            raise ModelMissing(f"rapidocr carries no {missing[0]} here; install the version that constraints.txt names")
        return TextModel(CARRIED, *carried)
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise ModelMissing(
            f"got {name}, which is no folder; give {CARRIED}, whose weights rapidocr carries, or a folder with a "
            "recogniser of PaddleOCR as ONNX (*rec*.onnx), and its detector (*det*.onnx) if it has one"
        )
    recogniser = _one_file(folder, "*rec*.onnx")
    if recogniser is None:
        raise ModelMissing(f"got {folder}, which holds no *rec*.onnx; put a recogniser of PaddleOCR as ONNX there")
    return TextModel(name, _one_file(folder, "*det*.onnx") or carried[0], recogniser, _one_file(folder, "*.txt"))


def load_text_reader(name: str = CARRIED, languages: Sequence[str] = (), min_confidence: float = 0.0) -> TextReader:
    """Load a reader for some languages, none: all that it reads; raises ModelMissing or WrongModel."""
    model = find_text_model(name)
    characters = _characters(model)
    check_languages(languages, characters, model.name)
    return TextReader(_engine(model), languages, min_confidence)


def _engine(model: TextModel) -> Any:
    """Start RapidOCR: without a turning of lines that stand upside down, and silent."""
    rapidocr = _rapidocr()
    threads = int(os.environ.get("OMP_NUM_THREADS") or -1)  # as Ray sets it; ONNX Runtime does not look
    settings = {
        "Global.log_level": "critical",
        "Global.use_cls": False,
        "Global.text_score": 0.0,
        "Global.max_side_len": MOST_SIDE_PX,
        "Det.model_path": str(model.detector),
        "Det.limit_type": "max",
        "Det.limit_side_len": MOST_SIDE_PX,
        "Rec.model_path": str(model.recogniser),
        "EngineConfig.onnxruntime.intra_op_num_threads": threads,
    }
    if model.characters is not None:
        settings["Rec.rec_keys_path"] = str(model.characters)
    return rapidocr.RapidOCR(params=settings)


def _characters(model: TextModel) -> str:
    """Return the characters that a recogniser knows, a line each, by its metadata or the file beside it.

    Raises WrongModel.
    """
    detector, recogniser = _session(model.detector), _session(model.recogniser)
    held: str | None = recogniser.get_modelmeta().custom_metadata_map.get("character")
    if held is not None:
        characters = "\n".join(held.splitlines())
    elif model.characters is not None:
        characters = _read_characters(model.characters)
    else:
        raise WrongModel(
            f"{model.recogniser} holds no list of its characters; put the dictionary that it was trained with beside "
            "it, as a text file with a character a line"
        )
    _output_shape(detector, model.detector, DETECTOR_INPUT, "a detector of text", 4)
    classes = _output_shape(recogniser, model.recogniser, RECOGNISER_INPUT, "a recogniser of text", 3)[-1]
    known = characters.count("\n") + 1
    if classes - known not in SPECIAL_CLASSES:
        raise WrongModel(
            f"{model.recogniser} tells {classes} classes apart, and its list has {known} characters, which is another "
            "one's; put the dictionary that it was trained with beside it"
        )
    return characters


def _session(path: Path) -> InferenceSession:
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf

    try:
        return InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except (Fail, InvalidGraph, InvalidProtobuf) as error:
        raise WrongModel(f"{path} is no ONNX model that ONNX Runtime can load ({error}); export it again") from error


def _output_shape(
    session: InferenceSession, path: Path, shape: tuple[int, ...], kind: str, dimensions: int
) -> tuple[int, ...]:
    """Run a model once on an empty picture and return the shape of its output, which has this many dimensions."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found, errors = (), (state.Fail, state.InvalidArgument, state.RuntimeException, state.NotImplemented, ValueError)
    with suppress(*errors):
        found = session.run(None, {session.get_inputs()[0].name: np.zeros(shape, np.float32)})[0].shape
    if len(found) != dimensions:
        raise WrongModel(f"{path} is not {kind} of PaddleOCR's; give one that was exported to ONNX from there")
    return found


def _read_characters(path: Path) -> str:
    try:
        return path.read_text("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise WrongModel(f"{path} is no text in UTF-8 ({error}); give the dictionary as such") from error


def _one_file(folder: Path, pattern: str) -> Path | None:
    found = sorted(folder.glob(pattern))
    if len(found) > 1:
        raise ModelMissing(f"got {folder}, which holds {len(found)} files {pattern}; leave one")
    return found[0] if found else None


def _rapidocr() -> ModuleType:
    """Import the package; OpenCV, which it uses, would leave a path in the environment for every child process."""
    before = os.environ.get(LIBRARY_PATH)
    try:
        rapidocr = import_module("rapidocr")
        import_module("rapidocr.main")
    except ModuleNotFoundError as error:
        raise ModelMissing(
            f"cannot read text: {error.name} is not installed; `pip install 'kinodex[text]'` brings it"
        ) from error
    finally:
        if before is None:
            os.environ.pop(LIBRARY_PATH, None)
        else:
            os.environ[LIBRARY_PATH] = before
    return rapidocr


def bands(height_px: int) -> list[tuple[int, int]]:
    """Split a height into bands of about `BAND_PX` that overlap."""
    count = max(1, -(-height_px // BAND_PX))
    edges = [round(height_px * number / count) for number in range(count + 1)]
    half = OVERLAP_PX // 2
    return [(max(0, top - half), min(height_px, bottom + half)) for top, bottom in pairwise(edges)]


def _in_whole(reading: Reading, top: float, bottom: float) -> Reading | None:
    """Move a reading from a band to the whole picture; None if the band's edge within the picture cuts it."""
    x0, y0, x1, y1 = reading.box
    if (y0 < EDGE and top > 0) or (y1 > 1 - EDGE and bottom < 1):
        return None
    return reading._replace(box=(x0, top + y0 * (bottom - top), x1, top + y1 * (bottom - top)))


def _best_of_each(found: Sequence[Reading]) -> list[Reading]:
    """Keep the surest of readings in one place, from top to bottom."""
    left: list[Reading] = []
    for each in sorted(found, key=lambda reading: -reading.confidence):
        if all(_shared(each.box, other.box) < SAME_PLACE for other in left):
            left.append(each)
    return sorted(left, key=lambda reading: (reading.box[1], reading.box[0]))


def _shared(one: Box, other: Box) -> float:
    width, height = (max(0.0, min(one[axis + 2], other[axis + 2]) - max(one[axis], other[axis])) for axis in (0, 1))
    return width * height / min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))


def _box(corners: Any, size: tuple[int, int]) -> Box:
    """Upright box around four corners in px `[4, 2]`, in fractions."""
    parts = np.asarray(corners, np.float64) / size
    (x0, y0), (x1, y1) = parts.min(0).clip(0, 1).tolist(), parts.max(0).clip(0, 1).tolist()
    return x0, y0, x1, y1
