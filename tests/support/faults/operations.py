"""Operations that write to a library, each to a tiny one of its own: those that are disturbed.

Each begins with a library of `BASES` (or with nothing), and can be run again on what a disturbed run left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy as np

from kinodex.index.change_space import use_space
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.remove import remove_added, remove_videos
from kinodex.index.repair import repair
from kinodex.index.rows import ChapterRow, FrameVectors, SegmentRow, VideoRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.likeness import Likeness
from kinodex.jobs.add.run import Addable, AddedRows, add
from kinodex.jobs.add.shots import NewShot, ShotFinder
from kinodex.jobs.add.stages import Extracts, Map, Shots
from kinodex.jobs.addresses.relocation import relocate
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.jobs.library import read_facts
from kinodex.jobs.metadata.input import read_metadata
from kinodex.jobs.metadata.update import set_metadata
from kinodex.jobs.text_import.captions import read_captions
from kinodex.jobs.text_import.run import import_text
from kinodex.pipeline.sources import list_sources
from tests.support.libraries.corpus import draw_film
from tests.support.libraries.freeze import _shown
from tests.support.libraries.random_library import (
    OTHER_DIM,
    SETTINGS,
    caption,
    detection,
    fingerprint,
    made,
    other_space,
    spoken,
    vectors_of,
    voice,
    write,
)
from tests.world.drawn_space import DRAWN, drawn_fingerprint

LIBRARIES = Path(__file__).resolve().parents[2] / "data" / "libraries"
SENTENCES = fingerprint("local-dir:/models/sentences", "c" * 64, OTHER_DIM)
FRAMES = 4


@dataclass(frozen=True)
class Given:
    """Where the films, tables and texts lie that operations read."""

    folder: Path

    @property
    def films(self) -> list[str]:
        return [str(self.folder / "films" / name) for name in ("a.mp4", "b.mp4")]


def give(folder: Path) -> Given:
    """Make films of two seconds, a table of metadata and a file of captions."""
    (folder / "films").mkdir(parents=True)
    given = Given(folder)
    for number, film in enumerate(given.films):
        draw_film(Path(film), 2.0, number)
    (folder / "metadata.csv").write_text("video,camera,year\nfilm aaaa,north,2026\nfilm bbbb,south,2025\n")
    (folder / "captions.json").write_text('{"a": ["a key", "a door"], "new": ["a bird"]}')
    return given


# Stages: the rows that a model would make, without one.


@dataclass(frozen=True)
class Stage:
    """An addition that knows its rows; `make` writes those of some videos."""

    name: str
    rows: Callable[[Library, VideoRow], list[Any]]
    make: Callable[[Library, Mapping[str, Any]], None]
    begin: Callable[[Library], None] = lambda library: None
    model: str = "somebody"
    runs_on: str = "cpu"
    settings: Mapping[str, Any] = field(default_factory=dict)
    library: Any = None

    @contextmanager
    def open(self, library: Library) -> Iterator[Self]:
        yield replace(self, library=library)

    def share(self, processes: int) -> Self:
        return self

    def prepare(self) -> None:
        self.begin(self.library)

    def again(self) -> tuple[str, ...]:
        return ()

    def rows_of(self, video: VideoRow) -> AddedRows:
        rows = self.rows(self.library, video)
        return AddedRows(rows, len(rows))

    def write(self, rows: Mapping[str, Any]) -> None:
        self.make(self.library, rows)


def vectors_in(space: Fingerprint) -> Stage:
    """Vectors of another space than the library's own."""

    def rows_of(library: Library, video: VideoRow) -> list[Any]:
        held = vectors_of(FRAMES, 4, space.dim)
        return list(zip(held.frame_no, held.time_s, held.vectors, strict=True))

    def write(library: Library, rows: Mapping[str, Any]) -> None:
        columns = {id_: (np.array(part) for part in zip(*each, strict=True)) for id_, each in rows.items()}
        library.additions.add_vectors({id_: FrameVectors(*parts) for id_, parts in columns.items()}, space)

    return Stage("vectors", rows_of, write, lambda library: library.additions.add_space(space), space.digest)


def _add_sentences(library: Library, rows: Mapping[str, Any]) -> None:
    library.sentences.add({id_: (each, vectors_of(len(each), 5).vectors) for id_, each in rows.items()}, SENTENCES)


def _speech(library: Library, rows: Mapping[str, Any]) -> None:
    (speaker,) = library.speakers.match([voice(3)], "voices", 0.5)
    lines = {id_: [spoken(1, "somebody speaks of a key", speaker)] for id_ in rows}
    library.additions.add_speech(lines, "somebody")


STAGES = {
    "captions": Stage(
        "captions",
        lambda library, video: [caption(0, f"a key in {video.title}", np.ones(32, np.float16) / np.sqrt(32))],
        lambda library, rows: library.additions.add_captions(rows, "somebody"),
    ),
    "detections": Stage(
        "detections",
        lambda library, video: [detection(1, "key", 0.9, 1), detection(2, "door", 0.8)],
        lambda library, rows: library.additions.add_detections(rows, "somebody"),
    ),
    "speech": Stage("speech", lambda library, video: [video], _speech),
    "screen_text": Stage(
        "screen_text",
        lambda library, video: [_shown()],
        lambda library, rows: library.lines.add("screen_text", rows, "somebody"),
    ),
    "chapters": Stage(
        "chapters",
        lambda library, video: [
            ChapterRow(video.video_id, "scene", 0, 0.0, 4.0, 0, 1, "Keys", "A key is shown.", "somebody")
        ],
        lambda library, rows: library.chapters.add(rows),
    ),
    "shots": Stage(
        "shots",
        lambda library, video: [NewShot(0, 0.0, 4.0, "window", None, None)],
        lambda library, rows: ShotFinder(Shots(), library).write(rows),
        model=Shots().key,
    ),
    "vectors": vectors_in(other_space()),
    "sentences": Stage(
        "sentences",
        lambda library, video: library.sentences.lines(video.video_id),
        _add_sentences,
        lambda library: library.sentences.add_space(SENTENCES, Likeness(0.0, 0.1)),
        SENTENCES.digest,
    ),
}


def brightness(vectors: Any) -> Any:
    """A function of a user's, over frames."""
    return vectors[:, 0]


def length(video: VideoRow) -> Any:
    """A function of a user's, over videos: its column becomes one of the videos."""
    return {"seconds": [video.duration_s]}


# Libraries to begin with.


def _films(given: Given, place: Path) -> None:
    _ingest(given.films[:1], str(place))


def _two(given: Given, place: Path) -> None:
    library = Library.create(str(place), SETTINGS, fingerprint())
    for number, id_ in enumerate(("aaaa", "bbbb")):
        video = made(id_, FRAMES, number, lines=((0.0, 1.0, f"line {number}"),))
        library.writer.add_segments({id_: [SegmentRow(id_, 0, 0.0, float(FRAMES), "window")]})
        library.writer.add_frames({id_: video.frame_rows()})
        library.writer.add_speech({id_: video.speech()})
        assert library.writer.complete([replace(video.video_row(), segments=1)]) == ()


def _stages(given: Given, place: Path) -> None:
    """Two videos with all stages."""
    _two(given, place)
    library = Library.open(str(place))
    for stage in STAGES.values():
        assert not add(library, stage).failed


def _spaces(given: Given, place: Path) -> None:
    """The same with vectors in a space of which the towers are here."""
    _stages(given, place)
    assert not add(Library.open(str(place)), vectors_in(drawn_fingerprint())).failed


def _untidy(given: Given, place: Path) -> None:
    """The same with leftovers of interrupted runs, many fragments and deleted rows."""
    _stages(given, place)
    library = Library.open(str(place))
    library.writer.add_frames({"left": made("left", 2, 9).frame_rows()})
    library.additions.add_detections({"aaaa": [detection(1, "key", 0.9)]}, "interrupted")
    write(library, made("gone", 2, 8))
    remove_videos(library, "gone")


def _torn(given: Given, place: Path) -> None:
    """A library that lost two of its tables."""
    _films(given, place)
    for name in ("videos", "failures"):
        rmtree(place / f"{name}.lance")


BASES: Mapping[str, Callable[[Given, Path], None]] = {
    "films": _films,
    "two": _two,
    "stages": _stages,
    "spaces": _spaces,
    "untidy": _untidy,
    "torn": _torn,
}


UNREADABLE = ("torn",)
"""Libraries that no reader opens before the operation is through."""

# Operations.

_CONFIG = IngestConfig(space=DRAWN, workers=1, jpeg_side_px=64, text_tower=False, retry_failed=True)


def _ingest(films: list[str], uri: str) -> int:
    return run_ingest(_CONFIG, list_sources(films), uri).count("failed")


def _add(addition: Addable, given: Given, uri: str) -> int:
    return add(Library.open(uri), addition).failed


def _import(given: Given, uri: str) -> int:
    source = given.folder / "captions.json"
    read = read_captions(source, 2.0)
    return import_text(Library.open(uri), "captions", "somebody", str(source), read, {}).report.failed


def _extract(given: Given, uri: str) -> int:
    from tests.support.servers.chat_server import ChatServer

    os.environ.update(OPENAI_API_KEY="none", KINODEX_CACHE=str(given.folder / "cache"))
    schema = {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}
    with ChatServer(lambda body: {"thing": "key", "evidence": []}) as server:
        asked = Extracts(row=schema, into="things", model="tester", each="video", base_url=server.base_url)
        return add(Library.open(uri), asked).failed


def _maintain(given: Given, uri: str) -> None:
    assert not maintain(Library.open(uri), keep_s=0, purge=True).after.problems


def _relocate(given: Given, uri: str) -> None:
    with suppress(UsageError):  # nothing lies under the old place any more: it is done
        relocate(Library.open(uri), str(given.folder / "films"), "/elsewhere/films")


def _set_metadata(given: Given, uri: str) -> None:
    set_metadata(Library.open(uri), read_metadata([given.folder / "metadata.csv"], None))


def _use_space(given: Given, uri: str) -> None:
    assert use_space(Library.open(uri), drawn_fingerprint().digest).note is None


def _repair(given: Given, uri: str) -> None:
    repair(uri, asdict(_CONFIG.settings()), read_facts)


@dataclass(frozen=True)
class Operation:
    """`run` takes the films and files, and the place of a library; it returns how many parts failed, if it counts."""

    base: str | None
    run: Callable[[Given, str], int | None]


OPERATIONS: Mapping[str, Operation] = {
    "ingest": Operation(None, lambda given, uri: _ingest(given.films[:1], uri)),
    "ingest more": Operation("films", lambda given, uri: _ingest(given.films, uri)),
    **{f"add {name}": Operation("two", partial(_add, stage)) for name, stage in STAGES.items()},
    "map frames": Operation("two", partial(_add, Map(function=brightness, into="bright"))),
    "map videos": Operation("two", partial(_add, Map(function=length, into="long", over="videos"))),
    "import captions": Operation("films", _import),
    "extract": Operation("films", _extract),
    "set metadata": Operation("two", _set_metadata),
    "relocate": Operation("films", _relocate),
    "remove": Operation("stages", lambda given, uri: remove_videos(Library.open(uri), "aaaa")),
    "remove added": Operation(
        "stages", lambda given, uri: remove_added(Library.open(uri), "captions", "somebody", "aaaa", "bbbb")
    ),
    "maintain": Operation("untidy", _maintain),
    "use-space": Operation("spaces", _use_space),
    "repair": Operation("torn", _repair),
}
