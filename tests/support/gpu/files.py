"""Real files by the GPU against the CPU: `python -m tests.support.gpu.files FOLDER OUT` writes OUT.json and OUT.md.

Every file is indexed alone, in the drawn space, by PyAV and the CPU and by NVDEC and the GPU; its rows are compared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.pipeline.decoding.open import probe
from tests.bench.gpu import REFERENCE, Way, compare, list_ways
from tests.bench.ingest import ingest_films
from tests.world.drawn_space import DRAWN

HEAD = "| file | stream | frames | read by | times | least cosine | worst picture |"
FPS = 2.0


def measure(path: Path, way: Way) -> dict[str, object]:
    """Index one file by both ways; what came of it, in words where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = [Path(folder) / name for name in ("cpu", "gpu")]
        config = IngestConfig(space=DRAWN, fps=FPS, text_tower=False)
        found: dict[str, object] = {"file": path.name}
        try:
            stream = probe(path)
            found["stream"] = f"{stream.codec} {stream.pix_fmt} {stream.width_px}x{stream.height_px} {stream.container}"
            for each, library in zip((REFERENCE, way), libraries, strict=True):
                update = {"decoder": each.decoder, "device": each.device}
                done = ingest_films([path], config.model_copy(update=update), library)
            found["fell_back"] = next(iter(done.fell_back), None)
            found["frames"] = next(video.frames for video in Library.open(str(libraries[1])).videos())
            found["equality"] = asdict(compare(libraries[0], libraries[1]))
        except (KinodexError, RuntimeError, ValueError) as error:
            found["failed"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return found


def line(found: dict[str, object]) -> str:
    """One row of the table."""
    if "failed" in found:
        return f"| {found['file']} | {found.get('stream', '–')} | – | {found['failed']} | – | – | – |"
    equality = found["equality"]
    assert isinstance(equality, dict)
    decibel = equality["min_psnr_db"]
    return (
        f"| {found['file']} | {found['stream']} | {found['frames']} "
        f"| {'PyAV: ' + str(found['fell_back']) if found['fell_back'] else 'NVDEC'} "
        f"| {'equal' if equality['same_times'] else '**differ**'} | {equality['min_cosine']:.5f} "
        f"| {'equal' if decibel is None else f'{decibel:.1f} dB'} |"
    )


def main(folder: Path, out: Path) -> None:
    """Measure all files of a folder."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    way = next(
        way for way in list_ways(next(path for path in paths if path.suffix == ".mp4")) if way.decoder == "nvdec"
    )
    rows = []
    for path in paths:
        rows.append(measure(path, way))
        print(line(rows[-1]), flush=True)
        out.with_suffix(".json").write_text(json.dumps({"way": asdict(way), "files": rows}, indent=2) + "\n")
    counted = Counter("failed" if "failed" in row else "PyAV" if row["fell_back"] else "NVDEC" for row in rows)
    text = "\n".join([HEAD, "|" + "---|" * (HEAD.count("|") - 1), *map(line, rows), "", f"{way.name}: {dict(counted)}"])
    out.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
