"""The image tower of a space on a CPU: torch's own, until ONNX Runtime turns out to be quicker with the same vectors.

Where bf16 does not pay, ONNX Runtime embeds more pictures a second (`tests/bench/towers.py`). So at the first batch the
tower's exported graph is tried on it, if one is at hand: in the user's cache, or with the library. Else, once torch has
computed for a minute, so that the export pays, another process exports the graph into the cache: the work at hand goes
on with it, and the next run begins with it.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused, KinodexError, SpaceMismatch, StorageError, TowersDamaged
from kinodex.index.spaces.space import MIN_COSINE, TRIAL_IMAGES, Space, torch_threads
from kinodex.index.spaces.towers import (
    Fingerprint,
    SpaceTowers,
    TowerFacts,
    cached_place,
    find_whole,
    is_whole,
    joined_arithmetic,
    put_whole,
    read_whole,
    scratch_beside,
    tower_facts,
    write_towers,
)

if TYPE_CHECKING:
    from PIL.Image import Image

    from kinodex.index.spaces.towers import ImageEmbedder

FindTower = Callable[[], Path | None]
"""Finds the folder of an exported image tower; may raise TowersDamaged or StorageError."""
TRIAL_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TrialRule:
    """When a graph is tried, and when it is taken."""

    min_parameters: int = 3_000_000
    """A smaller tower, the built-in space's, costs a tenth of decoding: it stays the same on every machine."""
    min_speedup: float = 1.2
    """It wins two to three times, or loses: noise does not decide."""
    min_cosine: float = MIN_COSINE
    pictures: int = 8
    export_after_s: float = 60.0
    """Seconds of torch's work before an export, which takes 15 to 35 seconds of one core."""


class CpuTower:
    """Image tower of a space on the CPU, which measures and chooses its arithmetic. Several threads may use it."""

    device_type = "cpu"

    def __init__(self, space: Space, rule: TrialRule | None = None) -> None:
        self.fingerprint = space.fingerprint
        self.name = space.name
        self.dim = space.dim
        self._rule = rule or TrialRule()
        self._space: Space | None = space
        self._tower: ImageEmbedder = space
        self._finders: list[FindTower] = [lambda: cached_place(self.fingerprint.digest, "image")]
        self._threads: int | None = None
        self._lock = threading.Lock()
        self._torch_s = 0.0
        self._next_look_s: float | None = None
        self._is_exporting = False
        self._used: dict[str, None] = {}
        self._notes: list[str] = []

    @property
    def arithmetic(self) -> str:
        """Each arithmetic that made vectors so far, in order; at the end a reason why a graph could not be used."""
        with self._lock:
            return joined_arithmetic([*self._used, *self._notes])

    def offer(self, find: FindTower) -> None:
        """Look for an exported tower also in the folder that `find` returns, if it is called before the first batch."""
        self._finders.append(find)

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with so many threads within this block, in whatever arithmetic."""
        graph = self._tower.threads(count) if isinstance(self._tower, ImageTower) else nullcontext()
        before, self._threads = self._threads, count
        try:
            with torch_threads(count), graph:
                yield
        finally:
            self._threads = before

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the model's input [3, h, w] of one picture [H, W, 3]; the same bytes in every arithmetic."""
        return self._tower.prepare(rgb)

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]."""
        if not len(batch):
            return np.empty((0, self.dim), np.float16)
        if self._space is not None:
            self._look_for_graph(batch)
        tower, began = self._tower, time.perf_counter()
        vectors = tower.embed(batch)
        with self._lock:
            self._torch_s += time.perf_counter() - began
            self._used[tower.arithmetic] = None
        return vectors

    def _look_for_graph(self, batch: NDArray[np.uint8]) -> None:
        """Try a graph at the first batch; after so much work of torch export one, and try that."""
        with self._lock:
            space, is_first = self._space, self._next_look_s is None
            if space is None or self._is_exporting or self._torch_s < (self._next_look_s or 0.0):
                return
            self._next_look_s = self._torch_s + self._rule.export_after_s
            if is_first and self._is_quick_already(space, batch):
                self._space = None
                return
            found = self._find()
            if found is not None:
                self._try(found, space, batch)
                return
            self._is_exporting = not is_first
        if not is_first:
            self._export_and_try(space, batch)

    def _is_quick_already(self, space: Space, batch: NDArray[np.uint8]) -> bool:
        if sum(each.numel() for each in space.image_parts()[0].parameters()) < self._rule.min_parameters:
            return True
        space.embed(batch[:TRIAL_IMAGES])  # which chooses torch's own arithmetic
        return not space.arithmetic.startswith("float32")

    def _export_and_try(self, space: Space, batch: NDArray[np.uint8]) -> None:
        """Export the graph while other threads go on with torch, and try it."""
        try:
            problem = export_in_child(self.name, self.fingerprint.digest)
        except ExportBusy:  # the next look may find what the other process makes
            with self._lock:
                self._is_exporting = False
            return
        with self._lock:
            found = None if problem else self._find()
            if found is not None:
                self._try(found, space, batch)
                return
            self._space = None
            self._notes.append(f"not exported to ONNX Runtime: {problem or 'the cache does not hold it'}")

    def _find(self) -> Path | None:
        """Find the folder of an exported tower of this space; one that cannot be read is none, and said."""
        for find in self._finders:
            try:
                folder = find()
                whole = find_whole(folder, "image") if folder else None
            except (TowersDamaged, StorageError) as error:
                self._notes.append(f"an exported tower was left out: {error}")
                continue
            if whole is not None and whole[0].digest == self.fingerprint.digest:
                return folder
        return None

    def _try(self, folder: Path, space: Space, batch: NDArray[np.uint8]) -> None:
        """Take the graph in `folder` if it is quicker than torch on this batch and gives the same vectors."""
        import torch

        self._space = None
        try:
            graph = ImageTower(self.fingerprint, folder / IMAGE_ONNX, self._threads or int(torch.get_num_threads()))
            speedup, cosine = compare(space, graph, batch[: self._rule.pictures])
        except Exception as error:  # a package that is missing or a graph that it cannot run say so in a hundred ways
            self._notes.append(f"ONNX Runtime was left out: {str(error).splitlines()[0][:200]}")
            return
        if cosine < self._rule.min_cosine:
            self._notes.append(f"ONNX Runtime was left out: a cosine of {cosine:.5f} to torch's vectors")
        elif speedup >= self._rule.min_speedup:
            self._tower = graph


def compare(space: Space, graph: ImageTower, batch: NDArray[np.uint8]) -> tuple[float, float]:
    """Measure how many times as quick as torch a graph embeds a batch, and the least cosine of a picture."""
    seconds: dict[ImageEmbedder, list[float]] = {space: [], graph: []}
    vectors = {}
    for _ in range(TRIAL_ROUNDS):
        for tower, times in seconds.items():
            began = time.perf_counter()
            vectors[tower] = tower.embed(batch).astype(np.float64)
            times.append(time.perf_counter() - began)
    ours, theirs = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors[space], vectors[graph]))
    return min(seconds[space]) / min(seconds[graph]), float((ours * theirs).sum(1).min())


# An exported image tower, run by ONNX Runtime on this machine's CPU: no torch, no open_clip.

IMAGE_ONNX = "image.onnx"
PIXELS, VECTORS = "pixels", "vectors"
"""Names of the graph's input, uint8 [n, 3, h, w], and of its output, unit vectors float32 [n, dim]."""

NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"


class ImageTower:
    """The image tower of a space as an ONNX graph, which scales and normalises pixels itself."""

    device_type = "cpu"

    def __init__(self, fingerprint: Fingerprint, graph: Path, threads: int | None = None) -> None:
        """Take a graph; without a number of `threads` it computes with `OMP_NUM_THREADS`, else one a core."""
        self.fingerprint = fingerprint
        self.name = fingerprint.name
        self.dim = fingerprint.dim
        self._fit = PictureFit.of(fingerprint.preprocess)
        self._graph = graph
        of_process = int(os.environ.get("OMP_NUM_THREADS") or 0)  # which Ray sets for each of its processes
        self._threads = of_process if threads is None else threads
        self._session: Any = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, folder: Path) -> ImageTower:
        """Open the image tower of a folder; raises TowersDamaged, or ModuleNotFoundError without ONNX Runtime."""
        space, _ = read_whole(folder, "image")
        tower = cls(space, folder / IMAGE_ONNX)
        tower._opened()
        return tower

    @property
    def arithmetic(self) -> str:
        """Arithmetic that makes the vectors."""
        return f"float32, ONNX Runtime {import_onnxruntime().__version__}"

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the tower's input [3, h, w] of a picture [H, W, 3]: the same bytes as open_clip's own transform."""
        return self._fit.prepare(rgb)

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]; several threads may call it."""
        if not len(batch):
            return np.empty((0, self.dim), np.float16)
        (vectors,) = self._opened().run([VECTORS], {PIXELS: np.ascontiguousarray(batch)})
        halves: NDArray[np.float16] = np.asarray(vectors).astype(np.float16)
        return halves

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with so many threads for each call of `embed` within this block."""
        before = self._threads
        self._use_threads(count)
        try:
            yield
        finally:
            self._use_threads(before)

    def _use_threads(self, count: int) -> None:
        with self._lock:
            if count != self._threads:
                self._threads, self._session = count, None

    def _opened(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = open_session(self._graph, self._threads)
            return self._session


def import_onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry, which would write an id of the machine and send events.

    `ORT_DISABLE_TELEMETRY=0` brings that back.
    """
    is_set = NO_TELEMETRY in os.environ
    if not is_set:
        os.environ[NO_TELEMETRY] = "1"
    try:
        import onnxruntime
    finally:
        if not is_set:
            os.environ.pop(NO_TELEMETRY, None)
    return onnxruntime


def open_session(graph: Path, threads: int) -> Any:
    """Open an ONNX graph with so many threads, 0 being one a core; raises TowersDamaged if it cannot be read."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors alone
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads leave the cores to others
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes are the compiled module's own, one for each way to be damaged
        raise TowersDamaged(f"cannot read {graph}: {str(error).splitlines()[0][:200]}") from error


@dataclass(frozen=True, slots=True)
class PictureFit:
    """Size of a tower's pictures and how others are brought to it, as open_clip's settings say it.

    `mode` "shortest" scales the shortest side and cuts evenly, "longest" scales the longest side and fills with
    `fill`, "squash" scales both. (pipeline/images.py does the same to frames; a room knows nothing of another.)
    """

    height_px: int
    width_px: int
    mode: str
    is_bilinear: bool
    fill: int

    @classmethod
    def of(cls, preprocess: str) -> PictureFit:
        """Read open_clip's preprocessing settings, as a fingerprint holds them in JSON."""
        settings = json.loads(preprocess)
        size = settings.get("size", 224)
        height_px, width_px = (size[0], size[-1]) if isinstance(size, Sequence) else (size, size)
        mode = settings.get("resize_mode") or "shortest"
        # Where it cuts to a size that is not square, open_clip leaves the interpolation at its default.
        follows = height_px == width_px or mode != "shortest"
        is_bilinear = settings.get("interpolation") == "bilinear" and follows
        return cls(height_px, width_px, mode, is_bilinear, settings.get("fill_color") or 0)

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture [H, W, 3] to size, as [3, height_px, width_px]."""
        from PIL import Image

        picture = Image.fromarray(rgb)
        size = self._scaled_size(*picture.size)
        if size != picture.size:
            resampling = Image.Resampling.BILINEAR if self.is_bilinear else Image.Resampling.BICUBIC
            picture = picture.resize(size, resampling)
        return np.ascontiguousarray(np.asarray(self._cut_or_filled(picture)).transpose(2, 0, 1))

    def _scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """Compute width and height after scaling, with open_clip's own rounding."""
        if self.mode == "squash":
            return self.width_px, self.height_px
        if self.mode == "shortest" and self.width_px == self.height_px:
            side = self.width_px
            return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        ratios = height / self.height_px, width / self.width_px
        ratio = max(ratios) if self.mode == "longest" else min(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))

    def _cut_or_filled(self, picture: Image) -> Image:
        from PIL import Image

        width, height = max(picture.width, self.width_px), max(picture.height, self.height_px)
        if (width, height) != picture.size:
            filled = Image.new("RGB", (width, height), (self.fill,) * 3)
            filled.paste(picture, ((width - picture.width) // 2, (height - picture.height) // 2))
            picture = filled
        left, top = round((width - self.width_px) / 2), round((height - self.height_px) / 2)
        return picture.crop((left, top, left + self.width_px, top + self.height_px))


# Export of a space's image tower to an ONNX graph that takes bytes and gives unit vectors. Needs torch and onnx.

PICTURES = 64
IMAGE_MIN_COSINE = 0.9999
MIN_HALF_COSINE = 0.999999
"""Weights are kept in half precision, half the size, where they give the same vectors to this cosine."""
HALVED_FROM_NUMBERS = 1024
BATCHES = (1, 7, 16)
"""Sizes of the batches of the check: the graph must take any."""
EXPORTERS = ("onnxscript", "onnx_ir", "torch.onnx")
"""Loggers of the packages that export."""
MOST_BYTES = 2_000_000_000
"""A graph in one file cannot be larger (protobuf)."""


def export_image_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the image tower of a space, freshly loaded on the CPU, into `folder`, and check it on 64 pictures.

    Weights are kept in half precision where the vectors stay the same. Raises ExportRefused with the reason if the
    exporter cannot follow the tower or its vectors differ.
    """
    import onnx

    module, pictures, file = _embedding_module(space), check_pictures(space), folder / IMAGE_ONNX
    graph, expected = _graph(space, module, pictures[1]), _expected(module, pictures)
    for is_half, needed in ((True, MIN_HALF_COSINE), (False, IMAGE_MIN_COSINE)):
        written = _halved(graph) if is_half else graph
        if written.ByteSize() > MOST_BYTES:
            continue
        onnx.save(written, file)
        if (least := float((_embedded(file, pictures) * expected).sum(1).min())) >= needed:
            settings = {"weights": "float16" if is_half else "float32"}
            return tower_facts(folder, [IMAGE_ONNX], settings, PICTURES, round(least, 7))
    file.unlink(missing_ok=True)
    if graph.ByteSize() > MOST_BYTES:
        raise ExportRefused(f"the image tower of {space.name} is larger than the 2 GB that one ONNX file can hold")
    raise ExportRefused(
        f"the exported image tower of {space.name} has a cosine of only {least:.5f} to the original on one of "
        f"{PICTURES} pictures; at least {IMAGE_MIN_COSINE} is needed"
    )


def check_pictures(space: Space) -> list[NDArray[np.uint8]]:
    """Make 64 pictures of the tower's input size, flat to finely grained, in batches [n, 3, h, w] of several sizes."""
    chance = np.random.default_rng(14)
    shape = space.prepare(np.zeros((64, 64, 3), np.uint8)).shape[1:]
    pictures = []
    for number in range(PICTURES):
        cells = min(2 ** (number % 8), *shape)
        grid = chance.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        rows, columns = (np.arange(length) * cells // length for length in shape)
        pictures.append(grid[rows][:, columns].transpose(2, 0, 1))
    bounds = np.cumsum([0, *BATCHES, PICTURES - sum(BATCHES)])
    return [np.stack(pictures[first:end]) for first, end in pairwise(bounds)]


def _graph(space: Space, module: Any, pictures: NDArray[np.uint8]) -> Any:
    """Trace the module as an ONNX model that takes batches of any size."""
    import onnxscript  # noqa: F401  (of the exporter, which without it fails with another error)
    import torch

    try:
        with torch.no_grad(), _silent():
            program: Any = torch.onnx.export(
                module,
                (torch.from_numpy(pictures),),
                input_names=[PIXELS],
                output_names=[VECTORS],
                dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # a tower that the exporter cannot follow says so in a hundred ways
        cause = error.__cause__ or error
        why = f"{type(cause).__name__}: {str(cause).strip()}".splitlines()[0][:200]
        raise ExportRefused(f"torch cannot export the image tower of {space.name}: {why}") from error
    return program.model_proto


def _embedding_module(space: Space) -> Any:
    """Make a module of uint8 pictures [n, 3, h, w] to unit vectors float32 [n, dim]."""
    import torch

    from kinodex.index.spaces.space import features_of

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tower, mean, std = space.image_parts()
            self.mean, self.std = (torch.tensor(each).view(3, 1, 1) for each in (mean, std))

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            images = (pixels.float() / 255 - self.mean) / self.std
            return torch.nn.functional.normalize(features_of(self.tower, images), dim=-1)

    return Embedding().eval()


def _expected(module: Any, pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    import torch

    with torch.inference_mode():
        vectors: NDArray[np.float32] = np.concatenate([module(torch.from_numpy(each)).numpy() for each in pictures])
    return vectors


def _embedded(file: Path, pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    session = open_session(file, 0)
    return np.concatenate([session.run([VECTORS], {PIXELS: each})[0] for each in pictures])


def _halved(model: Any) -> Any:
    """Copy a model with its large float32 weights in half precision, each cast to float32 where it is used."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    copy = ModelProto()
    copy.CopyFrom(model)
    graph, casts = copy.graph, []
    for tensor in graph.initializer:
        numbers = numpy_helper.to_array(tensor)
        largest = np.finfo(np.float16).max
        if numbers.dtype == np.float32 and numbers.size >= HALVED_FROM_NUMBERS and np.abs(numbers).max() < largest:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(numbers.astype(np.float16), f"{name}.half"))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return copy


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the exporter's own notes from the terminal, the graph that it prints where it gives up too; errors rise."""
    loggers = [logging.getLogger(name) for name in EXPORTERS]
    levels = [each.level for each in loggers]
    with warnings.catch_warnings(), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        for each in loggers:
            each.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for each, level in zip(loggers, levels, strict=True):
                each.setLevel(level)


# Export of a space's image tower into the user's cache, in a process of its own that `CpuTower` starts.
#
# PyTorch's exporter changes classes of torch while it works, so no other thread may compute beside it, and it takes up
# to 2.5 GB of memory, which a process gives back. The tower is checked as for a library.

LIMIT_S = 900.0
REFUSED, BUSY = 3, 4
"""Exit codes: the export is not possible, for the reason on stdout; another process exports the same at this moment."""


class ExportBusy(Exception):
    """Another process exports the same tower."""


def export_in_child(space_name: str, digest: str) -> str | None:
    """Export a tower into the cache in a child process; return why it failed, if it did. Raises ExportBusy."""
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
    command = [sys.executable, "-P", "-m", "kinodex.index.spaces.cpu", space_name, digest]
    with tempfile.TemporaryFile() as output:
        environment = {**os.environ, "PYTHONPATH": path, NO_TELEMETRY: "1"}
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment)
        try:
            code = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"its export took more than {LIMIT_S:.0f} s"
        finally:
            child.kill()
            child.communicate()
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if code == BUSY:
        raise ExportBusy
    if code == REFUSED:
        return lines[-1]
    return None if code == 0 else f"its export ended with {code}: {lines[-1][:200] if lines else 'nothing was said'}"


def export_to_cache(space_name: str, digest: str) -> Path:
    """Export the image tower of a space into the cache and return its folder; one that is there already is used.

    Raises ExportBusy, SpaceMismatch if the name stands for other weights here, ExportRefused or StorageError.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock  # here, because the query side may be where there is none

    from kinodex.index.spaces.space import load_space

    place = cached_place(digest, "image")
    with scratch_beside(place) as scratch, (place.parent / ".image.lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise ExportBusy from error
        if is_whole(place, "image"):
            return place
        space = load_space(space_name, device="cpu", towers="image")
        if space.fingerprint.digest != digest:
            raise SpaceMismatch(f"here {space_name} stands for other weights: {space.fingerprint} instead of {digest}")
        write_towers(scratch, SpaceTowers(space.fingerprint, image=export_image_tower(space, scratch)))
        put_whole(scratch, place, "image")
    return place


def main() -> None:
    """Export a tower as the child of `export_in_child`, and end with it."""
    with suppress(OSError):  # where memory runs out, this process is the one to lose
        Path("/proc/self/oom_score_adj").write_text("500")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        export_to_cache(sys.argv[1], sys.argv[2])
    except ExportBusy:
        sys.exit(BUSY)
    except (KinodexError, ModuleNotFoundError) as error:
        print(error)
        sys.exit(REFUSED)


def _end_with_parent() -> None:
    """End this process when its standard input closes, into which the parent writes nothing."""
    os.read(0, 1)  # not by `sys.stdin`, whose lock a thread may not hold when Python ends
    os._exit(1)


if __name__ == "__main__":
    main()
