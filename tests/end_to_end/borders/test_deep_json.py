"""JSON that is nested deep, in every file that a user gives: one line that says which file, and never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.traces.trace import read_trace
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.jobs.add.extract_schema import read_schema_file
from kinodex.jobs.collection.plan import read_plan
from kinodex.jobs.export.range_files import read_ranges
from kinodex.jobs.ingest.manifests import read_manifest
from kinodex.jobs.known_answers import read_known
from kinodex.jobs.metadata.input import read_metadata
from kinodex.pipeline.sources import read_download

READERS: dict[str, Callable[[Path, Library], Any]] = {
    "manifest.jsonl": lambda path, _: read_manifest(str(path)),
    "metadata.jsonl": lambda path, _: read_metadata([str(path)]),
    "trace.jsonl": lambda path, _: read_trace(path),
    "schema.json": lambda path, _: read_schema_file(path),
    "plan.json": lambda path, _: read_plan(path),
    "ranges.jsonl": lambda path, library: read_ranges(path, library),
    "known.jsonl": lambda path, _: read_known(path),
}


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize("name", READERS)
def test_a_file_of_deep_json_is_refused_in_a_line(name: str, depth: int, tmp_path: Path, library: Path) -> None:
    path = tmp_path / name
    path.write_text('{"uri": ' + "[" * depth + "]" * depth + "}\n")
    with pytest.raises(KinodexError) as caught:
        READERS[name](path, Library.open(str(library)))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_deep_json_beside_a_download_is_none(tmp_path: Path) -> None:
    (tmp_path / "film.info.json").write_text('{"tags": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert read_download(str(tmp_path / "film.mp4")) == {}
