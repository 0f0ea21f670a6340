"""The bytes of a library's video, fetched again: from its own place, or from another source of the same bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.repair import FileFacts
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.jobs.library import read_facts, source_of
from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.errors import SourceMissing
from kinodex.pipeline.fetch import Source, identify
from tests.support.libraries.agent_library import make_library
from tests.support.models.stage_models import tiny_film

BYTES, OTHERS = b"the bytes of a film", b"those of another"


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    return make_library(tmp_path_factory.mktemp("library"), {"film": ["a red kite"] * 4})


def video(path: Path, library: Library) -> VideoRow:
    """The row of a video whose source is this file, under the identity of `BYTES`."""
    path.write_bytes(BYTES)
    row = library.videos()[0]
    row_fields = {name: getattr(row, name) for name in row.__slots__}
    identity = identify(Source(str(path), "film"), path.parent).video_id
    return VideoRow(**(row_fields | {"video_id": identity, "uri": str(path)}))


def also_at(library: Library, path: Path, video_id: str) -> None:
    """Record that an ingest found the same video there."""
    library.ingest_log.add_sources([SourceRow(str(path), video_id, len(BYTES), "", datetime.now(UTC))])


def test_a_local_source_is_read_where_it_is(library, tmp_path):
    row = video(tmp_path / "film.mp4", library)
    with source_of(library, row) as found:
        assert (found.path, found.video_id, found.size_bytes) == (row.uri, row.video_id, len(BYTES))
    assert Path(row.uri).read_bytes() == BYTES


def test_a_remote_source_is_in_a_folder_that_goes(library, tmp_path):
    row = video(tmp_path / "film.mp4", library)
    fields = {name: getattr(row, name) for name in row.__slots__}
    remote = VideoRow(**(fields | {"uri": f"simplecache::file://{row.uri}"}))
    with source_of(library, remote) as found:
        fetched = Path(found.path)
        assert fetched.read_bytes() == BYTES and found.video_id == row.video_id
    assert not fetched.exists() and not fetched.parent.exists()


@pytest.mark.parametrize("now", [None, OTHERS], ids=["gone", "changed"])
def test_another_source_of_the_same_bytes_stands_in(library, tmp_path, now):
    row = video(tmp_path / "film.mp4", library)
    copies = [tmp_path / name for name in ("a_changed.mp4", "b_gone.mp4", "c_copy.mp4")]
    for path, content in zip(copies, (OTHERS, None, BYTES), strict=True):
        also_at(library, path, row.video_id)
        if content is not None:
            path.write_bytes(content)
    Path(row.uri).unlink()
    if now is not None:
        Path(row.uri).write_bytes(now)
    with source_of(library, row) as found:
        assert (found.path, found.video_id) == (str(copies[2]), row.video_id)


@pytest.mark.parametrize(
    ("now", "problem"), [(None, "film.mp4"), (OTHERS, "holds another video by now; put the old one back")]
)
def test_bytes_that_are_nowhere_are_an_error_about_the_first_source(library, tmp_path, now, problem):
    row = video(tmp_path / "film.mp4", library)
    also_at(library, tmp_path / "other_film.mp4", "0" * 32)  # another video's source, which is there
    (tmp_path / "other_film.mp4").write_bytes(BYTES)
    Path(row.uri).unlink()
    if now is not None:
        Path(row.uri).write_bytes(now)
    with pytest.raises(SourceMissing, match=problem), source_of(library, row):
        raise AssertionError("nothing is to be found")


def test_facts_of_a_file_that_still_holds_the_video(tmp_path):
    film = tmp_path / "film#1.mp4"
    tiny_film(film, 3, 0)
    video_id = identify(Source(str(film), "film"), tmp_path).video_id
    known = probe(film)
    assert read_facts(str(film), video_id) == FileFacts(known.fps, known.width_px, known.height_px, known.codec)
    assert known.width_px > 0
    for uri, id_ in ((str(film), "other"), (f"{film}x", video_id), (f"file://{film}", video_id)):
        assert read_facts(uri, id_) is None
