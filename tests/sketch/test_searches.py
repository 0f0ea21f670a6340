"""Searches of the films of a folder, from their scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from tests.sketch.searches import main, read_films


def test_searches_over_all_films_or_over_each(films: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(read_films(films)) == ["film-01.mp4", "film-02.mp4", "film-03.mp4"]
    main([str(films), "--count", "6"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("absent", False) for row in rows] == [False, True] * 3
    assert all("video" not in row for row in rows)
    main([str(films), "--count", "2", "--each"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) == 6
    assert {row["video"] for row in rows} == {"film-01.mp4", "film-02.mp4", "film-03.mp4"}


def test_a_folder_without_such_films_is_refused(films: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no films"):
        read_films(tmp_path)
    script = json.loads((films / "film-01.script.json").read_text())
    (tmp_path / "film-01.script.json").write_text(json.dumps(script | {"shots": []}))
    with pytest.raises(UsageError, match="no script of an independent film"):
        read_films(tmp_path)
