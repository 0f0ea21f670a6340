"""Freeze a library of this version, with all that one can hold: `python -m tests.support.libraries.freeze NAME`.

It goes to tests/data/libraries/NAME.tar.xz. Rows that need a model are written as one would hand them over.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np

from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, ClipVectors, FrameVectors, NoteRow
from kinodex.index.spaces.likeness import Likeness
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.schema import LATE_TABLES
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Shots
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from tests.support.libraries.random_library import (
    OTHER_DIM,
    add_stage,
    caption,
    detection,
    fingerprint,
    other_space,
    spoken,
    vectors_of,
    voice,
)
from tests.world.drawn_space import DRAWN
from tests.world.sketch.films import write_films

DATA = Path(__file__).resolve().parents[2] / "data" / "libraries"


def freeze(name: str) -> Path:
    """Make the library and its archive."""
    target = DATA / f"{name}.tar.xz"
    with TemporaryDirectory() as folder:
        films, place = Path(folder) / "films", Path(folder) / "library"
        write_films(films, hours=0.01, seed=5)
        film = films / "film-01.mp4"
        run_ingest(IngestConfig(space=DRAWN, jpeg_side_px=96, text_tower=False), list_sources([str(film)]), str(place))
        fill(Library.open(str(place)))
        with tarfile.open(target, "w:xz", preset=9) as archive:
            archive.add(place, "library")
    return target


def fill(library: Library) -> None:
    """Add what models, people and agents add to the one video of a library."""
    (video,) = library.videos()
    id_, held = video.video_id, library.vectors(video.video_id)
    for table in LATE_TABLES:
        ensure_table(library.tables, table)
    (speaker,) = library.speakers.match([voice(3)], "voices", 0.5)
    add_stage(library, "captions", "captioner", {id_: [caption(0, "a brown key in the meadow", held.vectors[0])]})
    add_stage(library, "detections", "detector", {id_: [detection(int(held.frame_no[1]), "key", 0.9, 1)]})
    add_stage(library, "speech", "whisper", {id_: [spoken(1, "somebody speaks of a key", speaker)]})
    add_stage(library, "screen_text", "reader", {id_: [_shown()]})
    library.chapters.add({id_: [ChapterRow(id_, "scene", 0, 0.0, 30.0, 0, 8, "Keys", "A key is shown.", "writer")]})
    assert library.additions.complete("chapters", "writer", {id_: 1}, {}) == ()
    library.additions.add_space(other_space())
    vectors = vectors_of(len(held.frame_no), 4, OTHER_DIM).vectors
    library.additions.add_vectors({id_: FrameVectors(held.frame_no, held.time_s, vectors)}, other_space())
    assert library.additions.complete("vectors", other_space().digest, {id_: len(vectors)}, {}) == ()
    sentences = fingerprint("local-dir:/models/sentences", "c" * 64, OTHER_DIM)
    library.sentences.add_space(sentences, Likeness(0.0, 0.1))
    lines = library.sentences.lines(id_)
    library.sentences.add({id_: (lines, vectors_of(len(lines), 5).vectors)}, sentences)
    assert library.additions.complete("sentences", sentences.digest, {id_: len(lines)}, {}) == ()
    video_text = fingerprint("local-dir:/models/video-text", "d" * 64, OTHER_DIM)
    library.additions.add_clip_space(video_text)
    starts_s = np.arange(0.0, 8.0, 2.0)
    clips = ClipVectors(starts_s, starts_s + 4, vectors_of(len(starts_s), 6).vectors)
    library.additions.add_clips({id_: clips}, video_text)
    assert library.additions.complete("clips", video_text.digest, {id_: len(starts_s)}, {}) == ()
    library.notes.add([NoteRow(id_, "captioner", 0.0, 2.5, "a key", None, 2)])
    library.metadata.write({id_: {"camera": "north", "year": 2026}})
    assert add(library, Shots()).added == 1


def _shown() -> SimpleNamespace:
    facts = {"start_s": 1.0, "end_s": 2.0, "text": "KEYS", "confidence": 0.9, "frames": 2, "language": "en"}
    return SimpleNamespace(**facts, box=(0.1, 0.2, 0.3, 0.4))


if __name__ == "__main__":
    print(freeze(sys.argv[1]))
