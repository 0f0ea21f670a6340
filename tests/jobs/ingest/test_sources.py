"""Lists of videos in a file, and sources that a library knows already."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.manifests import read_manifest
from kinodex.jobs.ingest.new_sources import MERGE_FROM, IdSet, NewSources, complete_ids, new_sources
from kinodex.pipeline.errors import SourceMissing
from kinodex.pipeline.source import Source, Stamp
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
    many = IdSet([ids(3)])
    for each in ids(MERGE_FROM + 10):
        many.add(each)
    assert len(many) == MERGE_FROM + 10
    assert all(each in many for each in ids(MERGE_FROM + 10)[::1000])
    assert not any(each in many for each in ids(100, MERGE_FROM + 10))


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
    assert names(chosen(library, remote("a", mark="other"), remote("b", size_bytes=11))) == ["a", "b"]
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


ROWS: list[dict[str, Any]] = [
    {"uri": "a.mp4", "id": "7", "title": "First, with a comma", "sidecars": ["a.en.srt", "/else/a.vtt"]},
    {"uri": "s3://bucket/deep/b.mp4", "id": None, "title": None, "sidecars": None},
    {"uri": "../c.mkv", "id": "nine", "title": None, "sidecars": []},
]


def write_all(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """The same rows in each format."""
    folder.mkdir()
    lines = ["uri,id,title,sidecars,camera"]
    for row in rows:
        sidecars = "; ".join(row["sidecars"] or [])
        lines.append(f'{row["uri"]},{row["id"] or ""},"{row["title"] or ""}",{sidecars},left')
    (folder / "m.csv").write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "m.parquet")
    return [folder / f"m.{suffix}" for suffix in ("csv", "jsonl", "parquet")]


def test_three_formats_say_the_same_here_and_elsewhere_and_equal_rows_count_once(tmp_path: Path) -> None:
    here = tmp_path / "lists"
    for path in write_all(here, ROWS):
        assert read_manifest(str(path)) == [
            Source(f"{here}/a.mp4", "First, with a comma", (f"{here}/a.en.srt", "/else/a.vtt"), "7"),
            Source("s3://bucket/deep/b.mp4", "b"),
            Source(f"{tmp_path}/c.mkv", "nine", (), "nine"),
        ], path.suffix
    memory = fsspec.filesystem("memory")
    memory.pipe("/lists/today/m.jsonl", b'{"uri": "a.mp4", "id": 12}\n{"uri": "../b.mp4"}\n{"uri": "/disk/c.mp4"}\n')
    found = read_manifest("memory://lists/today/m.jsonl")
    assert [source.uri for source in found] == ["memory://lists/today/a.mp4", "memory://lists/b.mp4", "/disk/c.mp4"]
    assert [source.id for source in found] == ["12", None, None]
    rows = [{"uri": f"v{number % 2_500}.mp4", "id": str(number % 2_500)} for number in range(5_000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    assert len(read_manifest(str(tmp_path / "m.parquet"))) == 2_500


def refused(manifest: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_manifest(str(manifest))
    assert str(caught.value).startswith(str(manifest))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_rows_are_named_by_number_and_only_the_first_few(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"uri": "a.mp4"}, {"uri": " "}, {"uri": 5}, {"uri": "b.mp4", "sidecars": [1]},
        {"uri": "a.mp4", "title": "other"}, {"uri": "c.mp4", "title": 5}, {"uri": None}, {"uri": None},
    ]  # fmt: skip
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    says = refused(tmp_path / "m.jsonl")
    assert "row 2: has no uri; row 3: got uri 5, which is no text; row 4: got sidecars [1]" in says
    assert "row 5:" in says and "stands in an earlier row" in says and "row 6: got title 5" in says
    assert "row 7" not in says and "(and 2 more)" in says


UNREADABLE = (
    ("m.csv", "url\na.mp4\n", "has no column uri, only url"),
    ("m.csv", "uri,sidecar\na.mp4,a.srt\n", "got a column sidecar; did you mean sidecars?"),
    ("m.csv", "uri,title\na.mp4,b,c\n", "row 1: has more fields than the header"),
    ("m.csv", "uri\n", "no rows"),
    ("m.csv", "uri\n\xff\n", "cannot be read"),
    ("m.jsonl", '{"uri": "a.mp4"}\n{"uri": \n', "row 2 is not JSON"),
    ("m.jsonl", '"a.mp4"\n', "row 1: is no object"),
    ("m.jsonl", '{"uri": "a.mp4"}\n{"uri": "b.mp4", "titel": "b"}\n', "did you mean title?"),
    ("m.jsonl", '{"uri": "a.mp4", "title": "\\ud800"}\n', "row 1: 'utf-8' codec can't encode"),
    ("m.parquet", "PAR1", "cannot be read"),
)


def test_a_manifest_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    for name, text, says in UNREADABLE:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        assert says in refused(tmp_path / name), text
    with pytest.raises(SourceMissing, match=r"none\.csv"):
        read_manifest(str(tmp_path / "none.csv"))
    with pytest.raises(UsageError, match=r"m\.txt; its name must end in \.csv, \.parquet, \.jsonl"):
        read_manifest(str(tmp_path / "m.txt"))
