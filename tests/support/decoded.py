"""References of decoded video, in the manner of FATE: `python -m tests.support.decoded` says what differs from them.

`tests/data/decoded.txt` has of each file of ../shared/media, by name and content, and of films that the tests make: the
instants and times of samples, the picture's luma as the means of an 8 x 8 grid, the end, and the subtitles; or the
class of the error. Every decoder and version of FFmpeg is held against it. `--write` writes it again.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.decoding.readers import VideoReader
from kinodex.pipeline.errors import PipelineError
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.source import Source
from kinodex.pipeline.subtitles.lines import read_subtitles, subtitle_lines
from tests.support.ffmpeg import MADE, make, small_pictures
from tests.world.sketch.render import render_film
from tests.world.sketch.script import write_script

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = ROOT / "tests" / "data" / "decoded.txt"
MEDIA = ROOT.parent / "shared" / "media"
GRID, SIDE_PX, SAMPLES = 8, 448, 4
LUMA = np.array([0.299, 0.587, 0.114])
FAR, MOST_LINES = 6, 12
"""The grid's means may differ by so much of 255 (measured: see `docs/decoders.md`); of more lines a digest is kept."""


@dataclass(frozen=True)
class Sample:
    """A sampled picture; `grid` `[8, 8]` are means of luma, 0 to 255."""

    number: int
    time_s: float
    grid: NDArray[np.uint8]

    def __str__(self) -> str:
        return f"{self.number} {self.time_s:.6f} {self.grid.tobytes().hex()}"


@dataclass(frozen=True)
class Decoded:
    """Contents of a file: samples and end, or an error; and lines of subtitles, or the digest of many."""

    name: str
    content: str
    fps: float = 0.0
    samples: tuple[Sample, ...] = ()
    end_s: float = 0.0
    subtitles: tuple[str, ...] = ()
    error: str = ""
    damaged: bool = False

    def __str__(self) -> str:
        lines = [f"{self.name} {self.content}"]
        if self.samples:
            lines += [f"  fps {self.fps}", *(f"  {each}" for each in self.samples), f"  end {self.end_s:.6f}"]
        lines += [f"  error {self.error}"] if self.error else ["  damaged yes"] if self.damaged else []
        return "\n".join([*lines, *(f"  said {line}" for line in self.subtitles)])


def grid_of(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Means of luma of `[height, width, 3]`, on a grid."""
    luma = rgb @ LUMA
    rows = np.linspace(0, luma.shape[0], GRID + 1).astype(int)
    columns = np.linspace(0, luma.shape[1], GRID + 1).astype(int)
    means = [
        [luma[top:bottom, left:right].mean() for left, right in pairwise(columns)] for top, bottom in pairwise(rows)
    ]
    return np.rint(means).astype(np.uint8)


def samples_of(video: VideoReader, fps: float) -> tuple[Sample, ...]:
    to_rgb = rgb_scaler(Fraction(video.metadata.sample_aspect_ratio).limit_denominator(1000), SIDE_PX, 1)
    return tuple(Sample(each.number, each.time_s, grid_of(to_rgb(each.frame))) for each in video.samples(fps))


def decoded(path: Path, name: str, content: str) -> Decoded:
    """Decode a file by PyAV."""
    try:
        if path.suffix in (".srt", ".vtt"):
            said = [
                f"{line.start_s:.3f} {line.end_s:.3f} {line.text!r}" for line in subtitle_lines(path.read_bytes(), name)
            ]
            return Decoded(name, content, subtitles=_short(said))
        with open_video(path) as video:
            fps = round(max(0.001, min(1.0, SAMPLES / (video.metadata.claimed_duration_s or SAMPLES))), 3)
            samples, end_s, damaged = samples_of(video, fps), video.end_s, video.decode_errors > 0
        lines, _ = read_subtitles(path, Source(str(path), path.stem), video.metadata)
    except PipelineError as error:
        return Decoded(name, content, error=type(error).__name__)
    said = [f"{line.start_s:.3f} {line.end_s:.3f} {line.text!r}" for line in lines]
    return Decoded(name, content, fps, samples, end_s, _short(said), damaged=damaged)


def _short(lines: Sequence[str]) -> tuple[str, ...]:
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (f"{len(lines)} lines {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}",)


def content_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def files(media: Path, folder: Path, made: Callable[[str], Path]) -> Iterator[tuple[str, str, Callable[[], Path]]]:
    """Name, content and place of every file; "made" is the content of what `made` gives, with any encoder."""
    for path in sorted(each for each in media.glob("*/*") if each.is_file()):
        yield f"{path.parent.name}/{path.name}", content_of(path), partial(Path, path)
    yield "made/drawn.mp4", "made", lambda: _drawn(folder / "drawn.mp4")
    for kind in MADE:
        yield f"made/{kind}", "made", partial(made, kind)


def _drawn(path: Path) -> Path:
    if not path.exists():
        render_film(write_script("reference", 4.0, 7), path)
    return path


def read_references(text: str | None = None) -> dict[str, Decoded]:
    """Read the references, by name."""
    found: dict[str, Decoded] = {}
    for block in (REFERENCES.read_text(encoding="utf-8") if text is None else text).strip().split("\n\n"):
        head, *rest = block.splitlines()
        name, _, content = head.rpartition(" ")
        facts: dict[str, list[str]] = {"samples": []}
        for line in rest:
            key, _, value = line.strip().partition(" ")
            facts.setdefault("samples" if key.isdigit() else key, []).append(line.strip() if key.isdigit() else value)
        samples = tuple(_sample(line) for line in facts["samples"])
        fps, end_s = (float(facts.get(key, ["0"])[0]) for key in ("fps", "end"))
        error = facts.get("error", [""])[0]
        said = tuple(facts.get("said", ()))
        found[name] = Decoded(name, content, fps, samples, end_s, said, error, "damaged" in facts)
    return found


def _sample(line: str) -> Sample:
    number, time_s, grid = line.split()
    return Sample(int(number), float(time_s), np.frombuffer(bytes.fromhex(grid), np.uint8).reshape(GRID, GRID))


def differences(wanted: Decoded, got: Decoded, far: int = FAR) -> list[str]:
    """Say how one differs from its reference: times by more than a microsecond, a grid by more than `far`."""
    found = [
        f"{name} {getattr(got, name)!r}, not {getattr(wanted, name)!r}"
        for name in ("content", "subtitles", "error", "damaged")
        if getattr(got, name) != getattr(wanted, name)
    ]
    found += [] if abs(got.end_s - wanted.end_s) < 2e-6 else [f"end {got.end_s:.6f}, not {wanted.end_s:.6f}"]
    return found + sample_differences(wanted.samples, got.samples, far)


def sample_differences(wanted: Sequence[Sample], got: Sequence[Sample], far: int = FAR) -> list[str]:
    if [each.number for each in wanted] != [each.number for each in got]:
        return [f"samples {[each.number for each in got]}, not {[each.number for each in wanted]}"]
    found = []
    for one, other in zip(wanted, got, strict=True):
        off = int(np.abs(one.grid.astype(int) - other.grid.astype(int)).max())
        if abs(one.time_s - other.time_s) > 2e-6:
            found.append(f"sample {one.number} at {other.time_s:.6f}, not {one.time_s:.6f}")
        if off > far:
            found.append(f"sample {one.number}: its grid is off by {off}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the references again, and show what changed")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        made = partial(make, small=small_pictures(MEDIA, Path(folder)), folder=Path(folder))
        found = [decoded(place(), name, content) for name, content, place in files(MEDIA, Path(folder), made)]
    text = "\n\n".join(map(str, found)) + "\n"
    before = REFERENCES.read_text(encoding="utf-8") if REFERENCES.exists() else ""
    references = read_references(before) if before else {}
    for each in found:
        for line in differences(references[each.name], each) if each.name in references else ["is new"]:
            print(f"{each.name}: {line}")
    if asked.write:
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), text.splitlines(True), "before", "after", n=0)
        )
        REFERENCES.write_text(text, encoding="utf-8")
        return 0
    return 0 if all(each.name in references and not differences(references[each.name], each) for each in found) else 3


if __name__ == "__main__":
    sys.exit(main())
