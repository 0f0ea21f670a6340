"""A library that lost a table: nobody takes what is left for leftovers, and what can be made again of it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.errors import LibraryDamaged, NotALibrary, StorageError
from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.repair import FileFacts, Repair, repair
from kinodex.index.rows import RunRow, SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.sweep import audit, sweep
from kinodex.pipeline.segments import Segment
from tests.support.libraries.random_library import (
    SETTINGS,
    WHEN,
    add_stage,
    caption,
    fingerprint,
    made,
    other_space,
    vectors_of,
)

FACTS = FileFacts(25.0, 640, 360, "h264")
SEEN = datetime(2026, 1, 3, tzinfo=UTC)
VIDEOS = ("aaaa", "bbbb", "cccc")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos whose sources a log knows, a stage of two of them, another space, and half of a fourth video."""
    library = Library.create(
        str(tmp_path_factory.mktemp("original") / "library"), SETTINGS | {"fps": 2.0}, fingerprint()
    )
    writer = library.writer
    for seed, video_id in enumerate(VIDEOS):
        video = made(video_id, 4, seed, start_s=3.0, lines=((3.0, 4.0, "hello"),))
        writer.add_frames({video_id: video.frame_rows()})
        writer.add_segments({video_id: [Segment(3.0, 5.0, "shot"), Segment(5.0, 7.5, "shot")]})
        writer.add_speech({video_id: video.speech()})
        row = video.video_row(video_id)
        writer.complete([type(row)(**asdict(row) | {"segments": 2, "duration_s": 4.5, "sample_fps": 2.0})])
        library.ingest_log.add_sources([SourceRow(f"/films/{video_id}.mp4", video_id, 1, "1", SEEN)])
    writer.add_frames({"half": made("half", 4, 9).frame_rows()})
    library.additions.add_space(other_space())
    library.additions.add_vectors({"aaaa": vectors_of(4, 1)}, other_space())
    library.additions.complete("vectors", other_space().digest, {"aaaa": 4}, {})
    add_stage(library, "captions", "m", {"aaaa": [caption(0, "a kite")], "bbbb": [caption(0, "a dog")]})
    settings = {"settings": {"fps": 2.0, "jpeg_side_px": 512, "space_digest": fingerprint().digest}}
    library.ingest_log.add_run(RunRow("1", "ingest", "done", WHEN, WHEN, settings))
    return Path(library.uri)


@pytest.fixture
def place(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "library")


def lose(place: Path, *names: str) -> None:
    for name in names:
        for folder in place.glob(f"{name}.lance"):
            shutil.rmtree(folder)


def mended(place: Path, facts: FileFacts | None = FACTS) -> Repair:
    return repair(str(place), {"fps": 1.0, "jpeg_side_px": 512}, lambda uri, video_id: facts)


def content(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def rows_of(place: Path) -> list[dict[str, Any]]:
    rows = [asdict(row) for row in Library.open(str(place)).videos()]
    return [{name: value for name, value in row.items() if name != "ingested_at"} for row in rows]


USES: tuple[Callable[[str], Any], ...] = (
    Library.open,
    Library.exists,
    lambda uri: Library.open_or_create(uri, SETTINGS, fingerprint()),
    lambda uri: Library.create(uri, SETTINGS, fingerprint()),
)


@pytest.mark.slow
@pytest.mark.parametrize("left", ["*", "leases", "vectors_*"])
def test_without_its_videos_a_library_is_refused_and_left_as_it_is(place: Path, left: str) -> None:
    with Library.open(str(place)).lease("ingest", "an ingest before"):
        pass
    kept = {path.name for path in place.glob(f"{left}.lance")} - {"videos.lance"}
    lose(place, *(path.stem for path in place.glob("*.lance") if path.name not in kept))
    before = content(place)
    for use in USES:
        with pytest.raises(LibraryDamaged, match=r"table of videos is gone.*kinodex maintain .* --repair"):
            use(str(place))
        assert content(place) == before


@pytest.mark.slow
def test_videos_are_made_again_from_the_rows_the_log_and_the_sources(place: Path) -> None:
    before, captions = rows_of(place), Library.open(str(place)).captions("aaaa")
    lose(place, "videos")
    report = mended(place)
    assert (report.videos, report.made) == (VIDEOS, ("videos",))
    assert [line for line in report.lost if line.startswith("video ")] == [
        "video half: it has 4 frames and no segment; the next ingest reads its source again"
    ]
    assert rows_of(place) == before
    library = Library.open(str(place))
    assert (library.settings, library.fingerprint) == ({"fps": 2.0, "jpeg_side_px": 512}, fingerprint())
    assert library.captions("aaaa") == captions
    assert health(library).problems == ("video half has rows but is not complete",)
    assert (sweep(library), audit(library).problems) == (1, ())


@pytest.mark.slow
def test_what_is_lost_is_said(place: Path) -> None:
    lose(place, "videos", "sources", "runs", "additions", "vectors_*other*")
    Tables(str(place)).delete("frames", equal("video_id", "cccc") & equal("frame_no", 1))
    report = mended(place, None)
    assert report.videos == ("aaaa", "bbbb")
    assert report.made == ("additions", "sources", "runs", "videos")
    for part in (
        "the library's settings fps, jpeg_side_px: taken for the usual ones",
        "the rows of the table sources",
        "of video aaaa: title, source, frame rate, codec and size",
        "video cccc: it has 3 frames and 4 vectors; the next ingest reads its source again",
    ):
        assert part in report.lost
    (row, _) = rows_of(place)
    assert row | {"start_s": 3.0, "duration_s": 4.5, "frames": 4, "width_px": 64, "height_px": 36, "fps": None} == row
    repaired = Library.open(str(place))
    maintain(repaired, keep_s=60.0)
    assert [each.text for each in repaired.captions("aaaa")] == ["a kite"], "what models wrote is no leftover"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leases", "frames", "captions"])
def test_a_table_that_is_missing_is_named_and_made_again(place: Path, name: str) -> None:
    lose(place, name)
    for check in (health, maintain):
        with pytest.raises(StorageError, match=r"maintain .* --repair"):
            check(Library.open(str(place)))
    report = mended(place)
    assert report.made == (name,)
    assert f"the rows of the table {name}" in report.lost or name == "leases"
    checked = health(Library.open(str(place)))
    broken = {"frames": 3, "captions": 2}.get(name, 0)
    assert len([each for each in checked.problems if "half" not in each]) == broken
    assert mended(place) == Repair((), (), ())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leases", "sources", "videos"])
def test_a_table_that_cannot_be_read_is_set_aside(place: Path, name: str) -> None:
    before = rows_of(place)
    for file in (place / f"{name}.lance" / "_versions").iterdir():
        file.write_bytes(file.read_bytes()[:20])
    (said,) = [line for line in mended(place).lost if "cannot be read" in line]
    assert name in said
    (aside,) = place.glob(f".damaged-{name}-*")
    assert list(aside.glob("_versions/*"))
    assert rows_of(place) == before


def test_rows_of_videos_that_an_ingest_completed_are_no_leftovers(place: Path) -> None:
    """As after the table of videos was put back from an older copy."""
    library = Library.open(str(place))
    before = rows_of(place)
    library.tables.delete("videos", equal("video_id", "bbbb"))
    for tidy in (sweep, maintain):
        with pytest.raises(LibraryDamaged, match=r"lacks 1 that an ingest completed \(bbbb\).* --repair"):
            tidy(library)
    assert mended(place).videos == ("bbbb",)
    assert rows_of(place) == before
    assert sweep(library) == 1


def test_too_much_is_lost(place: Path, tmp_path: Path) -> None:
    with pytest.raises(NotALibrary, match="no table"):
        mended(tmp_path / "nothing")
    lose(place, "videos", "vectors_*", "runs")
    before = content(place)
    with pytest.raises(LibraryDamaged, match="nothing left says which space is its own"):
        mended(place)
    assert content(place) == before
