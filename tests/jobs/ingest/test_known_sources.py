"""Known sources and videos: what is unchanged is left out, and many ids take little memory."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow
from kinodex.jobs.ingest.sources import MERGE_FROM, IdSet, NewSources, complete_ids, new_sources
from kinodex.pipeline.fetch import Source, Stamp
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

SEEN = datetime(2026, 1, 2, tzinfo=UTC)


def ids(count: int, begin: int = 0) -> list[str]:
    return [hashlib.md5(str(number).encode()).hexdigest() for number in range(begin, begin + count)]


def test_a_set_of_ids_holds_what_was_given_and_what_was_added() -> None:
    known = IdSet([ids(1000), [], ids(1000, 1000)])
    assert len(known) == 2000
    assert all(each in known for each in ids(2000))
    assert not any(each in known for each in ids(100, 2000))
    for each in ids(20, 1990):
        known.add(each)
    assert len(known) == 2010 and ids(1, 2009)[0] in known
    assert "no id of this form, which is longer than all" not in known and ids(1)[0] not in IdSet()


def test_many_added_ids_are_sorted_in_among_the_others() -> None:
    known = IdSet([ids(3)])
    for each in ids(MERGE_FROM + 10):
        known.add(each)
    assert len(known) == MERGE_FROM + 10
    assert all(each in known for each in ids(MERGE_FROM + 10)[::1000])
    assert not any(each in known for each in ids(100, MERGE_FROM + 10))


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """One complete video under two names, a source that failed, and one whose video is gone."""
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    video_id = "a" * 32
    write(library, made(video_id, 3, 1))
    rows = {"a": video_id, "b": video_id, "failed": "", "gone": "f" * 32}
    library.ingest_log.add_sources(SourceRow(f"s3://x/{name}", id_, 10, "mark", SEEN) for name, id_ in rows.items())
    return library


def remote(name: str, mark: str = "mark", size_bytes: int = 10) -> Source:
    return Source(f"s3://x/{name}", name, stamp=Stamp(size_bytes, mark))


def chosen(library: Library, *sources: Source, check_content: bool = False, retry_failed: bool = False) -> NewSources:
    return new_sources(library, sources, complete_ids(library), check_content, retry_failed)


def names(new: NewSources) -> list[str]:
    return [source.title for source in new.sources]


def test_unchanged_sources_of_complete_videos_and_failed_ones_are_left_out(library: Library) -> None:
    new = chosen(library, *(remote(name) for name in ("a", "b", "failed", "gone", "new")))
    assert names(new) == ["gone", "new"]
    assert (list(new.sizes), new.left_out) == ([10, 10], 3)


def test_changed_sources_are_not_left_out(library: Library) -> None:
    assert names(chosen(library, remote("a", mark="other"), remote("b", size_bytes=11))) == ["a", "b"]


def test_failed_sources_and_unchanged_ones_are_chosen_by_their_options(library: Library) -> None:
    every = [remote(name) for name in ("a", "failed")]
    assert names(chosen(library, *every, retry_failed=True)) == ["failed"]
    assert names(chosen(library, *every, check_content=True)) == ["a", "failed"]


def test_a_source_without_a_stamp_is_chosen_and_a_local_one_is_looked_up(library: Library, tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(b"12345")
    local, missing = Source(str(film), "film"), Source(str(tmp_path / "none.mp4"), "none")
    new = chosen(library, local, missing)
    assert names(new) == ["film", "none"] and list(new.sizes) == [5, -1]
    mark = str(film.stat().st_mtime_ns)
    (video,) = library.videos()
    library.ingest_log.add_sources([SourceRow(str(film), video.video_id, 5, mark, SEEN)])
    assert names(chosen(library, local, replace(missing, title="still none"))) == ["still none"]


def test_looking_up_many_sources_takes_little_memory(library: Library) -> None:
    """Their addresses, kept once more to find them by, took 100 bytes a source."""
    sources = [remote(f"folder/{number:08d}") for number in range(20_000)]
    tracemalloc.start()
    try:
        new = chosen(library, *sources, remote("a"))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(new.sources), new.left_out) == (20_000, 1)
    assert peak_bytes < 60 * len(sources)
