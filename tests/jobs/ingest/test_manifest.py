"""Lists of videos: three formats that say the same, and wrong rows named by their number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.sources import read_manifest
from kinodex.pipeline.errors import SourceMissing
from kinodex.pipeline.fetch import Source

ROWS: list[dict[str, Any]] = [
    {"uri": "a.mp4", "id": "7", "title": "First, with a comma", "sidecars": ["a.en.srt", "/else/a.vtt"]},
    {"uri": "s3://bucket/deep/b.mp4", "id": None, "title": None, "sidecars": None},
    {"uri": "../c.mkv", "id": "nine", "title": None, "sidecars": []},
]


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> Path:
    lines = ["uri,id,title,sidecars,camera"]
    for row in rows:
        sidecars = "; ".join(row["sidecars"] or [])
        lines.append(f'{row["uri"]},{row["id"] or ""},"{row["title"] or ""}",{sidecars},left')
    path = folder / "m.csv"
    path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    return path


def as_jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "m.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("write", [as_csv, as_jsonl, as_parquet])
def test_three_formats_say_the_same(tmp_path: Path, write: Any) -> None:
    here = tmp_path / "lists"
    here.mkdir()
    assert read_manifest(str(write(here, ROWS))) == [
        Source(f"{here}/a.mp4", "First, with a comma", (f"{here}/a.en.srt", "/else/a.vtt"), "7"),
        Source("s3://bucket/deep/b.mp4", "b"),
        Source(f"{tmp_path}/c.mkv", "nine", (), "nine"),
    ]


def test_a_remote_manifest_and_what_it_is_relative_to() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/lists/today/m.jsonl", b'{"uri": "a.mp4", "id": 12}\n{"uri": "../b.mp4"}\n{"uri": "/disk/c.mp4"}\n')
    found = read_manifest("memory://lists/today/m.jsonl")
    assert [source.uri for source in found] == ["memory://lists/today/a.mp4", "memory://lists/b.mp4", "/disk/c.mp4"]
    assert [source.id for source in found] == ["12", None, None]


def test_many_rows_and_equal_ones_count_once(tmp_path: Path) -> None:
    rows = [{"uri": f"v{number % 25_000}.mp4", "id": str(number % 25_000)} for number in range(50_000)]
    assert len(read_manifest(str(as_parquet(tmp_path, rows)))) == 25_000


def refused(manifest: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_manifest(str(manifest))
    assert str(caught.value).startswith(str(manifest))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_rows_are_named_by_number_and_only_the_first_few(tmp_path: Path) -> None:
    good = {"uri": "a.mp4"}
    wrong: list[dict[str, Any]] = [
        {"uri": " "}, {"uri": 5}, {"uri": "b.mp4", "sidecars": [1]}, {"uri": "a.mp4", "title": "other"},
        {"uri": "c.mp4", "title": 5}, {"uri": None}, {"uri": None},
    ]  # fmt: skip
    says = refused(as_jsonl(tmp_path, [good, *wrong]))
    assert "row 2: has no uri; row 3: got uri 5, which is no text; row 4: got sidecars [1]" in says
    assert "row 5:" in says
    assert "stands in an earlier row" in says
    assert "row 6: got title 5" in says
    assert "row 7" not in says
    assert "(and 2 more)" in says


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
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
    ],
)
def test_a_manifest_that_cannot_be_read_says_why(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    assert says in refused(path)


def test_a_manifest_that_is_not_there_or_of_no_known_kind(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match=r"none\.csv"):
        read_manifest(str(tmp_path / "none.csv"))
    with pytest.raises(UsageError, match=r"m\.txt; its name must end in \.csv, \.parquet, \.jsonl"):
        read_manifest(str(tmp_path / "m.txt"))
