"""Cost of clips, and what is left of the frames' results when both are fused: `python -m ... LIBRARY SEARCHES FOLDER`.

The model has the size and code of microsoft/xclip-base-patch32 and random weights: its clips cost what trained ones do,
and are the worst that fusion can meet. That movement is found at all is shown by a server of the tests, which measures
it by a rule. Neither says anything of how well a trained model finds things.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinodex.index.library import Library
from kinodex.index.rows import Hit
from kinodex.index.store.schema import CLIPS_PREFIX, vectors_table
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Clips
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.models.stage_models import xclip
from tests.support.scenes.moving_film import COLOURS, moving_film
from tests.support.servers.embed_server import EmbedServer
from tests.world.drawn_space import DRAWN

K = 10
WAYS = ("right", "left")


def main(place: str, searches: str, folder: str) -> None:
    library = Library.open(place)
    asked = [json.loads(line) for line in Path(searches).read_text(encoding="utf-8").splitlines()]
    texts, present = [each["text"] for each in asked], [each for each in asked if "relevant" in each]
    before = {text: found(library, text, "pictures", K) for text in texts}
    began = time.process_time()
    model = xclip(Path(folder) / "xclip", whole=True)
    stage = Clips(model=str(model), device="cpu")
    with stage.open(library):
        loaded_s = time.process_time() - began
    began, clock = time.process_time(), time.monotonic()
    report = add(library, stage)
    cpu_s, wall_s = time.process_time() - began, time.monotonic() - clock
    space = library.visible.usual_space("clips")
    assert space is not None
    name = vectors_table(space, CLIPS_PREFIX)
    files = [file for file in Path(place, f"{name}.lance").rglob("*") if file.is_file()]
    windows, stored = library.tables.count(name), sum(file.stat().st_size for file in files)
    row(f"windows of 4 s every 2 s, of {report.added} films", windows)
    row("CPU s a window, 8 frames of 224 px", f"{cpu_s / windows:.2f}")
    row("wall s a window", f"{wall_s / windows:.2f}")
    row("CPU s to make and load the model, once", f"{loaded_s:.0f}")
    row(f"bytes of a window's vector, of {space.dim} numbers", 2 * space.dim)
    row("bytes of all files of the table, a window", f"{stored / windows:.0f}")
    for most in (K, 2 * K):
        kept = [share(before[text], found(library, text, "all", most)) for text in texts]
        what = f"share of the frames' first {K} hits in the first {most} of all"
        row(f"{what}, {len(texts)} searches", f"{sum(kept) / len(kept):.2f}")
    for where in ("pictures", "all"):
        right = sum(is_found(library, each, where) for each in present)
        row(f"a right moment in the first {K}, {where}", f"{right} of {len(present)}")
    directions(Path(folder))


def row(what: str, value: object) -> None:
    print(f"| {what} | {value} |")


def found(library: Library, text: str, where: str, k: int) -> list[Hit]:
    return Finder(library).find(Find(query=text, in_=where, k=k))


def is_found(library: Library, asked: Mapping[str, Any], where: str) -> bool:
    """True if a hit among the first shares time with a moment that a script says is right."""
    moments = [(Path(video).stem, start_s, end_s) for video, start_s, end_s in asked["relevant"]]
    return any(
        hit.title == title and hit.time_s < end_s and max(hit.end_s, hit.time_s + 0.1) > start_s
        for hit in found(library, asked["text"], where, K)
        for title, start_s, end_s in moments
    )


def covers(hit: Hit, frame: Hit) -> bool:
    return hit.video_id == frame.video_id and hit.time_s - 2.0 <= frame.time_s < max(hit.end_s, hit.time_s + 2.0)


def share(frames: list[Hit], every: list[Hit]) -> float:
    return sum(any(covers(hit, frame) for hit in every) for frame in frames) / max(1, len(frames))


def directions(folder: Path) -> None:
    """Squares that move one way: by frames, which are the same both ways, and by clips of a server that measures it."""
    films = []
    for number in range(6):
        order = WAYS if number % 2 else WAYS[::-1]
        films.append(moving_film(folder / f"film-{number}.mp4", [(colour, way) for colour in COLOURS for way in order]))
    place = folder / "moving"
    config = IngestConfig(space=DRAWN, text_tower=False)
    run_ingest(config, list_sources([str(film) for film in films]), str(place))
    library = Library.open(str(place))
    right = {"pictures": 0, "clips": 0}
    asked = [(colour, way, row.video_id) for colour in COLOURS for way in WAYS for row in library.videos()]
    with EmbedServer() as server:
        add(library, Clips(model="mover", base_url=server.base_url))
        for where in right:
            for colour, way, video_id in asked:
                hit = Finder(library).find(
                    Find(query=f"a {colour} square moves {way}", in_=where, videos=(video_id,), k=1)
                )[0]
                middle_s = (hit.time_s + hit.end_s) / 2
                part = int(middle_s // 4)
                order = WAYS if int(library.video(video_id).title[-1]) % 2 else WAYS[::-1]
                right[where] += ([*COLOURS][part // 2], order[part % 2]) == (colour, way)
    for where, count in right.items():
        row(f"colour and way right in the first hit, {where}", f"{count} of {len(asked)}")


if __name__ == "__main__":
    os.environ["KINODEX_CACHE"] = str(Path(sys.argv[3]) / "cache")
    Path(sys.argv[3]).mkdir(exist_ok=True)
    main(*sys.argv[1:])
