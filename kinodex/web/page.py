"""One HTML document whose program comes from the server, or is in it together with the data and pictures.

The modules in `static` are joined when the page is first asked for: nobody who installs has anything to build.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from graphlib import TopologicalSorter
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from kinodex.guards import NotGiven, numbered
from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, StoredFrame, VideoRow
from kinodex.jobs.eval.page import TEMPLATES as REPORT_TEMPLATES
from kinodex.jobs.library import frames_between, grey_values, shrunk_jpeg
from kinodex.pipeline.errors import PictureError
from kinodex.web.inputs import ViewerApi
from kinodex.web.trace_view import shown_frames

STATIC = Path(__file__).with_name("static")
PREFIX = "viewer/"
IMPORT = re.compile(r'^import \{([^}]*)\} from "viewer/([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE)
_START = """import("{code}").catch((error) => {{
  document.querySelector(".loading").textContent =
    `The program of this page did not load: ${{error.message}}. Reload it; if that does not help, restart the server.`;
}});"""


@cache
def bundle() -> str:
    """All modules of the page as one; `default` of it are their exports by name, such as main.js and trace/tree.js."""
    paths = sorted(STATIC.rglob("*.js"))
    return bundled({path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8") for path in paths})


def bundled(modules: Mapping[str, str]) -> str:
    """Join modules by name to one: each becomes a function that gives its exports, after those that it imports from."""
    imports = {name: [found for _, found in IMPORT.findall(text)] for name, text in modules.items()}
    order = TopologicalSorter(imports).static_order()
    return "\n".join(
        ["const modules = {};", *(_wrapped(name, modules[name]) for name in order), "export default modules;\n"]
    )


def _wrapped(name: str, text: str) -> str:
    def taken(found: re.Match[str]) -> str:
        return f"const {{{found[1].replace(' as ', ': ')}}} = modules[{json.dumps(found[2])}];"

    body = EXPORT.sub("", IMPORT.sub(taken, text))
    return f"modules[{json.dumps(name)}] = (() => {{\n{body}return {{ {', '.join(EXPORT.findall(text))} }};\n}})();"


@cache
def style() -> str:
    """Style sheet of the evaluation's report, then those of the viewer, those for all its pages first."""
    shared = sorted((STATIC / "shared").glob("*.css"))
    of_pages = [sheet for sheet in sorted(STATIC.glob("*/*.css")) if sheet not in shared]
    sheets = (REPORT_TEMPLATES / "page.css", *shared, *of_pages)
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


@cache
def parts() -> dict[str, tuple[str, str]]:
    kinds = {"js": (bundle(), "text/javascript"), "css": (style(), "text/css")}
    return {
        f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.{end}": (text, kind) for end, (text, kind) in kinds.items()
    }


def served_page() -> tuple[str, str]:
    """Page as a server sends it, and its Content-Security-Policy: it may load only from that server."""
    code, sheet = (f"/page/{name}" for name in parts())
    start = _START.format(code=code)
    policy = (
        f"default-src 'none'; script-src 'self' '{_hash(start)}'; style-src 'self'; "
        "img-src 'self' data:; media-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    links = f'<link rel="stylesheet" href="{sheet}">\n<link rel="modulepreload" href="{code}">'
    return _document(links, "", "", start), policy


def whole_page(data: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """Page as one file: `data` by the paths of the server, JPEGs by "library/video/frame"."""
    start = f"\n{bundle()}"
    policy = (
        f"default-src 'none'; script-src '{_hash(start)}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    urls = {name: f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}" for name, jpeg in pictures.items()}
    held = {"data": data, "pictures": urls}
    # Escaped so that no HTML parser takes one of its strings for the end of the element.
    text = as_json(held).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return _document(
        f"<style>{style()}</style>",
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<script type="application/json" id="held">{text}</script>',
        start,
    )


def as_json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")


def _document(style_tag: str, policy: str, held: str, start: str) -> str:
    page = Template((STATIC / "page.html").read_text(encoding="utf-8"))
    return page.substitute(style=style_tag, policy=policy, held=held, start=start)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"


# All inputs of the viewer as one HTML file to send to somebody, with as many pictures as fit.

SIDE_PX = 480
JPEG_QUALITY = 82
MOST_PICTURE_BYTES = 24_000_000
MOST_DATA_BYTES = 60_000_000
"""Traces of a run hold every prompt; a browser still opens a file of this size."""
MOST_VIDEOS = 2000

PictureKeys = dict[tuple[int, str, int], None]
"""Pictures, by library, video and frame, in the order in which they matter."""


@dataclass(frozen=True, slots=True)
class OneFile:
    """Page as one file, with counts of the traces of runs and of the pictures that did not fit."""

    text: str
    traces_left_out: int
    pictures_left_out: int


def one_file(api: ViewerApi, data_bytes: int = MOST_DATA_BYTES, picture_bytes: int = MOST_PICTURE_BYTES) -> OneFile:
    """Write the traces and runs, or else the libraries, with their pictures into one page."""
    traces = api.trace_keys()
    runs = range(len(api.inputs.runs))
    alone = not traces and not runs
    libraries = api.home["libraries"] if alone else []
    data: dict[str, Any] = {"home": api.home | {"libraries": libraries}}
    keys: PictureKeys = {}
    for key in traces:
        keys |= _add_trace(api, key, data)
    left_out = 0
    for run in runs:
        left_out += _add_run(api, run, data, keys, data_bytes)
    for library in range(len(libraries)):
        keys |= _add_library(api, library, data)
    pictures = dict(_pictures(api, keys, picture_bytes))
    return OneFile(whole_page(data, pictures), left_out, len(keys) - len(pictures))


def _add_trace(api: ViewerApi, key: str, data: dict[str, Any]) -> PictureKeys:
    shown = api.trace(key)
    data[f"traces/{key}"], data[f"traces/{key}/curves"] = shown, api.curves(key)
    number = shown["library"]
    frames = [] if number is None else [*filter(None, shown["evidence"]), *shown_frames(shown["trace"])]
    return {(number, frame.video_id, frame.frame_no): None for frame in frames}


def _add_run(api: ViewerApi, run: int, data: dict[str, Any], keys: PictureKeys, most_bytes: int) -> int:
    """Add a run's report and as many of its traces as fit, with their pictures; return the count of the others."""
    report = api.run(run) | {"has_page": False}
    data[f"runs/{run}"] = report
    left, left_out = most_bytes, 0
    for item, question in enumerate(report["questions"]):
        for contender, answer in enumerate(question["answers"]):
            if answer is None or not answer["has_trace"]:
                continue
            key = f"r{run}-{contender}-{item}"
            left -= len(as_json(api.view(key))) if left > 0 else 0
            answer["has_trace"] = left > 0
            if left > 0:
                keys |= _add_trace(api, key, data)
            else:
                left_out += 1
    return left_out


def _add_library(api: ViewerApi, number: int, data: dict[str, Any]) -> PictureKeys:
    """Add a library's videos with their words, and the middle frame of each segment; a search needs the server."""
    library = api.inputs.libraries[number]
    data[f"libraries/{number}"] = api.library(number)
    rows = library.videos()[:MOST_VIDEOS]
    listed: list[dict[str, Any]] = []
    data[f"libraries/{number}/videos"] = listed
    data[f"libraries/{number}/failures"] = library.ingest_log.failures()[:MOST_VIDEOS]
    keys: PictureKeys = {}
    for row in rows:
        view = api.video(number, row.video_id)
        spans = [(each.start_s, each.end_s) for each in library.segments(row.video_id)] or [(row.start_s, row.end_s)]
        frames = [each for some in frames_between(library, row, spans, 1) for each in some] if row.frames else []
        poster = first_telling(frames)
        listed.append(asdict(row) | {"poster": poster and poster.frame_no})
        times_s = {frame.frame_no: frame.time_s for frame in frames}
        detected = {label: [no for no in numbers if no in times_s] for label, numbers in view["detected"].items()}
        frames_only = {"frame_nos": list(times_s), "times_s": list(times_s.values()), "detected": detected}
        place = f"libraries/{number}/videos/{row.video_id}"
        data[place] = view | frames_only
        for frame_no in sorted({no for numbers in detected.values() for no in numbers}):
            data[f"{place}/detections/{frame_no}"] = api.detections(number, row.video_id, frame_no)
        keys |= {(number, row.video_id, frame_no): None for frame_no in times_s}
    return keys


def _pictures(api: ViewerApi, keys: Iterable[tuple[int, str, int]], left: int) -> Iterator[tuple[str, bytes]]:
    for number, video_id, frame_no in keys:
        jpeg = shrunk_jpeg(api.inputs.libraries[number].frames(video_id, [frame_no])[0], SIDE_PX, JPEG_QUALITY)
        left -= len(jpeg)
        if left < 0:
            return
        yield f"{number}/{video_id}/{frame_no}", jpeg


# The poster of a video: its most telling frame, small.
#
# The vectors of a video's frames are grouped by spherical k-means (Dhillon and Modha 2001, "Concept decompositions for
# large sparse text data", section 3), and the frame nearest to the mean of each group stands for it, that of the
# largest group first. The first of them that is neither dark, nor blank, nor a card of text on plain ground is the
# poster; where all are, it is the one with the most shades.

POSTER_SIDE_PX, POSTER_QUALITY = 480, 80
GROUPS, STEPS = 6, 5
MOST_FRAMES = 512
"""Frames of a longer video are thinned to these, evenly, before they are grouped."""
CANDIDATES = 8
MIN_BRIGHTNESS, MAX_BRIGHTNESS = 28.0, 236.0
MIN_CONTRAST = 14.0
"""Standard deviation of the grey values, 0 to 255."""
MOST_OF_ONE_SHADE = 0.72
"""Part of a picture in one of 16 shades; cards of text have more."""
SHADES = 16
KEPT_BYTES = 48 << 20


class NoPoster(NotGiven):
    """A video without frames, or without one that can be read."""


@dataclass(frozen=True, slots=True)
class Poster:
    """A JPEG of at most `SIDE_PX`, the number of its frame, and a tag that changes with the video."""

    jpeg: bytes
    frame_no: int
    tag: str


class Posters:
    """Posters of libraries by number and video, the last few thousand kept; for one thread at a time."""

    def __init__(self, uris: Sequence[str], kept_bytes: int = KEPT_BYTES) -> None:
        self._uris = uris
        self._libraries: dict[int, Library] = {}
        self._kept: OrderedDict[str, Poster] = OrderedDict()
        self._room = kept_bytes

    def poster(self, number: int, video_id: str) -> Poster:
        """Choose the poster of a video, or take it from memory; raises NotGiven, NoPoster or UnknownVideo."""
        tag = self.tag(number, video_id)
        if tag not in self._kept:
            library = self._library(number)
            row = library.video(video_id)
            frame = telling_frame(library, row)
            self._keep(Poster(shrunk_jpeg(frame, POSTER_SIDE_PX, POSTER_QUALITY), frame.frame_no, tag))
        self._kept.move_to_end(tag)
        return self._kept[tag]

    def tag(self, number: int, video_id: str) -> str:
        """Tag of a video's poster, which changes when it is ingested again; raises NotGiven or UnknownVideo."""
        row = self._library(number).video(video_id)
        parts = (number, row.video_id, row.frames, row.ingested_at.isoformat())
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]

    def _library(self, number: int) -> Library:
        uri = numbered(self._uris, number, "library")
        if number not in self._libraries:
            self._libraries[number] = Library.open(uri)
        return self._libraries[number]

    def _keep(self, poster: Poster) -> None:
        self._kept[poster.tag] = poster
        self._room -= len(poster.jpeg)
        while self._room < 0 and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._room += len(oldest.jpeg)


def telling_frame(library: Library, row: VideoRow) -> StoredFrame:
    if not row.frames:
        raise NoPoster(f"got {row.title}, which has only text and no frames")
    frame = first_telling(library.frames(row.video_id, candidates(library.vectors(row.video_id))))
    if frame is None:
        raise NoPoster(f"got {row.title}, of which no picture can be read; ingest it again")
    return frame


def first_telling(frames: Sequence[StoredFrame]) -> StoredFrame | None:
    """Choose the first telling one of some frames, else the one with the most shades; None if none can be read."""
    shades = {frame.frame_no: values for frame in frames if (values := _grey(frame)) is not None}
    readable = [frame for frame in frames if frame.frame_no in shades]
    telling = (frame for frame in readable if is_telling(shades[frame.frame_no]))
    return next(telling, None) or max(readable, key=lambda frame: variety(shades[frame.frame_no]), default=None)


def candidates(stored: FrameVectors) -> list[int]:
    """List the numbers of up to `CANDIDATES` frames that stand for a video, the best first."""
    every = np.linspace(0, len(stored.frame_no) - 1, min(len(stored.frame_no), MOST_FRAMES)).round().astype(int)
    if len(every) > 1:
        every = every[1:]  # films open with black and with logos
    ranked = [every[group] for group in groups(stored.vectors[every].astype(np.float32))]
    in_turn = [int(at) for turn in zip_longest(*ranked) for at in turn if at is not None]
    return [int(stored.frame_no[at]) for at in in_turn[:CANDIDATES]]


def groups(vectors: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Group unit vectors `[n, dim]`: the rows of each group from its mean outwards, the largest group first."""
    count = min(GROUPS, -(-len(vectors) // 3))
    middles = vectors[((np.arange(count) + 0.5) * len(vectors) / count).astype(int)]
    for _ in range(STEPS):
        nearest = (vectors @ middles.T).argmax(axis=1)
        sums = np.stack([vectors[nearest == group].sum(axis=0) for group in range(count)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        middles = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), middles)
    similarities = vectors @ middles.T
    nearest = similarities.argmax(axis=1)
    found = [np.flatnonzero(nearest == group) for group in range(count)]
    order = sorted(range(count), key=lambda group: (-len(found[group]), group))
    return [found[g][np.argsort(-similarities[found[g], g], kind="stable")] for g in order if len(found[g])]


def is_telling(grey: NDArray[np.uint8]) -> bool:
    """True for grey values `[height, width]` that are neither dark, nor blank, nor almost all of one shade."""
    shades = np.bincount(grey.ravel() // (256 // SHADES), minlength=SHADES) / grey.size
    return bool(
        MIN_BRIGHTNESS <= grey.mean() <= MAX_BRIGHTNESS
        and grey.std() >= MIN_CONTRAST
        and shades.max() <= MOST_OF_ONE_SHADE
    )


def variety(grey: NDArray[np.uint8]) -> float:
    part = np.bincount(grey.ravel(), minlength=256) / grey.size
    part = part[part > 0]
    return float(-(part * np.log2(part)).sum())


def _grey(frame: StoredFrame) -> NDArray[np.uint8] | None:
    """Read a frame's grey values small; None if it cannot be read, so that another frame is chosen."""
    try:
        return grey_values(frame)
    except PictureError:
        return None
