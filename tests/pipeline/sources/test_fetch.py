"""A source is identified by its bytes, wherever they are; a remote one is fetched once, to a file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from pipeline.decoding.open import probe
from pipeline.errors import SourceForbidden, SourceMissing, SourceUnreachable
from pipeline.sources.discover import Source, list_sources
from pipeline.sources.fetch import content_id, identify, local_copy
from tests.support.film_server import FilmHandler

WORDS = b"no video, but bytes"


def test_a_local_file_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(WORDS)
    found = identify(Source(str(path), "film"), tmp_path / "elsewhere")
    assert (found.path, found.size_bytes, found.video_id) == (str(path), len(WORDS), content_id(path))


def test_a_remote_file_is_fetched_under_a_name_of_its_own(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/kinodex/film.mkv", WORDS)
    first, second = (identify(Source("memory://kinodex/film.mkv", "film"), tmp_path) for _ in range(2))
    assert first.path != second.path
    assert first.video_id == second.video_id
    for each in (first, second):
        path = Path(each.path)
        assert (path.parent, path.suffix, path.read_bytes()) == (tmp_path, ".mkv", WORDS)


def test_a_pipe_that_would_never_end_is_no_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "film.mp4")
    with pytest.raises(SourceMissing, match="no regular file, but a pipe"):
        identify(Source(str(tmp_path / "film.mp4"), "film"), tmp_path)


def test_a_name_that_cannot_be_looked_up_is_an_error_of_its_source(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="File name too long"):
        identify(Source(f"/tmp/{'x' * 300}.mp4", "film"), tmp_path)


@pytest.mark.parametrize("uri", ["memory://kinodex/nothing.mp4", "/no/such/film.mp4"])
def test_what_is_not_there_leaves_nothing(tmp_path: Path, uri: str) -> None:
    with pytest.raises(SourceMissing, match="nothing is there"):
        identify(Source(uri, "film"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_identity_is_the_content_not_the_name(folder: Path) -> None:
    before = content_id(folder / "a.mp4")
    (folder / "a.mp4").rename(folder / "renamed.mp4")
    assert content_id(folder / "renamed.mp4") == before
    assert len(before) == 32
    assert content_id(folder / "film.mp4") != before


def test_local_copy_of_a_file_is_the_file(folder: Path) -> None:
    with local_copy(Source(str(folder / "a.mp4"), "a")) as path:
        assert path == folder / "a.mp4"
    (folder / "a.mp4").unlink()
    with pytest.raises(SourceMissing), local_copy(Source(str(folder / "a.mp4"), "a")):
        pass


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read everything, so become someone who may not."""
    pytest.importorskip("av")  # nobody may be unable to import it
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_no_permission(folder: Path, nobody: None) -> None:
    if os.getuid() != 0:
        (folder / "a.mp4").chmod(0)
    with pytest.raises(SourceForbidden, match="not permitted"), local_copy(Source(str(folder / "a.mp4"), "a")):
        pass
    with pytest.raises(SourceForbidden, match="not permitted"):
        probe(folder / "a.mp4")


def test_a_web_address(address: str) -> None:
    (source,) = list_sources([f"{address}/film.mp4?token=1"])
    assert source.title == "film"
    with local_copy(source) as path:
        assert path.read_bytes() == FilmHandler.film
        assert path.suffix == ".mp4"
