"""Read the text in a picture with RapidOCR, which runs the PP-OCR models of PaddleOCR on the CPU.

Lines are found by DB (Liao et al. 2019, arXiv 1911.08947) and read by CTC, each by itself. The package carries the
weights of PP-OCRv6 small: Latin script, Chinese and Japanese. Others are a folder with a
recogniser, and a detector if there is one; the files are given by their paths, so nothing is fetched from a hub.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.errors import ModelMissing, WrongModel
from pipeline.models.boxes import Box
from pipeline.models.scripts import check_languages, keep_scripts, scripts_of

if TYPE_CHECKING:
    from PIL.Image import Image

CARRIED = "PP-OCRv6-small"
"""Name of the weights that rapidocr carries."""
CARRIED_FILES = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")
MOST_SIDE_PX = 2000
"""Longer sides are scaled down; nothing is enlarged: that took 3 to 7 times as long and read no more (measured)."""
LEAST_SIDE_PX = 32


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
        self._scripts = scripts_of(languages)
        self._min_confidence = min_confidence

    def read(self, picture: Image) -> list[Reading]:
        """Read the lines of a picture, from top to bottom; of at least `min_confidence`, with a letter or digit."""
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
        return [each for each in readings if any(map(str.isalnum, each.text)) and _has_area(each.box)]

    def _clean(self, text: str) -> str:
        """Full-width forms become plain ones and white space single blanks."""
        plain = unicodedata.normalize("NFKC", text)
        return " ".join(keep_scripts(plain, self._scripts).split())


def find_text_model(name: str = CARRIED) -> TextModel:
    """Find the files of the carried model, or of a folder of ONNX files of PaddleOCR's.

    A folder holds one file with `rec` in its name, and may hold one with `det` and one `*.txt` of characters. Raises
    ModelMissing.
    """
    package = _package()
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
    """Load the reader `name` (see `find_text_model`) for some languages, such as "en"; none: all that it reads.

    Raises ModelMissing where the package or a file is missing, and WrongModel for a file that is no such model or a
    language that it cannot read.
    """
    model = find_text_model(name)
    characters = _characters(model)
    check_languages(languages, characters, model.name)
    return TextReader(_engine(model), languages, min_confidence)


def _engine(model: TextModel) -> Any:
    """Start RapidOCR: without a turning of lines that stand upside down, and silent."""
    from rapidocr import RapidOCR

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
    return RapidOCR(params=settings)


def _characters(model: TextModel) -> str:
    """All characters that a recogniser knows: from its own metadata, else from the file beside it."""
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf

    for path in (model.detector, model.recogniser):
        try:
            session = InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except (Fail, InvalidGraph, InvalidProtobuf) as error:
            raise WrongModel(
                f"{path} is no ONNX model that ONNX Runtime can load ({error}); export it again"
            ) from error
    held: str | None = session.get_modelmeta().custom_metadata_map.get("character")
    if held is not None:
        return held
    if model.characters is None:
        raise WrongModel(
            f"{model.recogniser} holds no list of its characters; put the dictionary that it was trained with beside "
            "it, as a text file with a character a line"
        )
    return model.characters.read_text("utf-8")


def _one_file(folder: Path, pattern: str) -> Path | None:
    """Find the one file of a pattern; raises ModelMissing for several."""
    found = sorted(folder.glob(pattern))
    if len(found) > 1:
        raise ModelMissing(f"got {folder}, which holds {len(found)} files {pattern}; leave one")
    return found[0] if found else None


def _package() -> Path:
    try:
        import rapidocr
    except ModuleNotFoundError as error:
        raise ModelMissing(
            f"cannot read text: {error.name} is not installed; `pip install 'kinodex[text]'` brings it"
        ) from error
    return Path(str(rapidocr.__file__)).parent


def _box(corners: Any, size: tuple[int, int]) -> Box:
    """Upright box around four corners in px `[4, 2]`, in fractions."""
    parts = np.asarray(corners, np.float64) / size
    (x0, y0), (x1, y1) = parts.min(0).clip(0, 1).tolist(), parts.max(0).clip(0, 1).tolist()
    return x0, y0, x1, y1


def _has_area(box: Box) -> bool:
    return box[2] > box[0] and box[3] > box[1]
