"""A corpus as people have it: short films, real media, the same film under two names, and files that are no videos."""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.reports import IngestReport
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from tests.world.drawn_space import DRAWN
from tests.world.sketch.render import draw_frames, encode_frames
from tests.world.sketch.script import FPS, write_script

FILM_S = 4.0
NO_VERSIONS: Mapping[str, str] = MappingProxyType({})
DRAWN_FILMS = 6


def draw_film(path: Path, length_s: float, seed: int) -> None:
    """Draw the beginning of a film; a script alone makes none shorter than half a minute."""
    frames = draw_frames(write_script(path.stem, length_s, seed))
    encode_frames(islice(frames, round(length_s * FPS)), path, lambda number: None)


def make_corpus(
    folder: Path,
    videos: int,
    media: Path | None,
    doubles: int | None = None,
    poison: int | None = None,
    length_s: float = FILM_S,
) -> Path:
    """`videos` files: real media if there is any, else sketch films; a tenth doubles, a tenth poison unless given.

    Films beyond `DRAWN_FILMS` show what an earlier one shows, with other bytes: other videos, for less time than
    drawing.
    """
    folder.mkdir(parents=True)
    real = sorted(path for path in media.rglob("*") if path.parent.name in ("clips", "awkward")) if media else []
    real = [path for path in real if path.stat().st_size < 3_000_000][: videos // 3]
    for path in real:
        shutil.copy(path, folder / path.name)
    doubles = videos // 10 if doubles is None else doubles
    poison = videos // 10 if poison is None else poison
    films = videos - len(real) - doubles - poison
    for number in range(films):
        film = folder / f"film-{number:03d}.mp4"
        if number < DRAWN_FILMS:
            draw_film(film, length_s, number)
        else:
            drawn = folder / f"film-{number % DRAWN_FILMS:03d}.mp4"
            film.write_bytes(other_version(drawn.read_bytes(), number))
    for number in range(doubles):
        shutil.copy(folder / f"film-{number:03d}.mp4", folder / f"again-{number:03d}.mp4")
    for number in range(poison):
        whole = (folder / f"film-{number:03d}.mp4").read_bytes()
        broken = (b"", whole[: len(whole) // 2], np.random.default_rng(number).bytes(5000))[number % 3]
        (folder / f"poison-{number:03d}.mp4").write_bytes(broken + bytes([number]) if broken else b"")
    return folder


def other_version(film: bytes, number: int) -> bytes:
    """Make other bytes that show the same: an MP4 film with a box after it that players skip."""
    return film + struct.pack(">I4sI", 12, b"free", number)


def contents(library: Library) -> dict[str, Any]:
    """All that two ingests of the same sources must agree in, by table; vectors apart.

    Of several files with the same bytes, which one a video is named after is left open.
    """
    found: dict[str, Any] = {"videos": {}, "frames": {}, "segments": {}, "speech": {}}
    for row in library.videos():
        facts = (row.start_s, row.duration_s, row.frames, row.segments, row.speech_lines, row.decode_errors)
        found["videos"][row.video_id] = (*facts, row.codec, row.width_px, row.height_px)
        numbers = library.vectors(row.video_id).frame_no.tolist()
        stored = library.frames(row.video_id, numbers)
        found["frames"][row.video_id] = [
            (frame.frame_no, frame.time_s, frame.width_px, hashlib.sha256(frame.jpeg).hexdigest()) for frame in stored
        ]
        found["segments"][row.video_id] = [
            (each.start_s, each.end_s, each.kind) for each in library.segments(row.video_id)
        ]
        found["speech"][row.video_id] = [(each.start_s, each.text) for each in library.speech(row.video_id)]
    found["failures"] = sorted((row.uri, row.stage, row.error_class) for row in library.ingest_log.failures())
    found["sources"] = sorted((row.uri, row.video_id) for row in library.ingest_log.sources().values())
    return found


def assert_same(one: Library, other: Library, versions: Mapping[str, str] = NO_VERSIONS) -> None:
    """Row for row; vectors to within what rounding to float16 leaves open.

    `versions` maps videos that `one` may hold besides to those with the same pictures, whose rows they must have.
    """
    left, right = contents(one), contents(other)
    for table in ("videos", "frames", "segments", "speech"):
        right[table] |= {id_: right[table][like] for id_, like in versions.items() if id_ in left[table]}
    for table, rows in left.items():
        assert rows == right[table], table
    for row in one.videos():
        mine = one.vectors(row.video_id).vectors
        theirs = other.vectors(versions.get(row.video_id, row.video_id)).vectors
        assert np.allclose(mine.astype(np.float32), theirs.astype(np.float32), atol=2e-3), row.title
    for library in (one, other):
        checked = audit(library, deep=True)  # digests, too: made by workers, by a run that was killed, or by one alone
        assert not checked.problems, checked


def ingest(sources: Path, place: Path, **settings: Any) -> IngestReport:
    """Ingest sources in this process, with the drawn space and one worker if `settings` name no others."""
    config = IngestConfig(**{"space": DRAWN, "workers": 1, **settings})
    return run_ingest(config, list_sources([str(sources)]), str(place))


def counts(report: IngestReport) -> tuple[int, int, int]:
    """Sources that were indexed, were already there, and failed."""
    return report.count("indexed"), report.count("already there"), report.count("failed")
