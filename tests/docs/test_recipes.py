"""The Python of docs/recipes.md runs as it stands there, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_python import BLOCK, run


@pytest.mark.slow
def test_recipes(root: Path, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "films").symlink_to(films)
    monkeypatch.chdir(tmp_path)
    page = root / "docs" / "recipes.md"
    assert len(list(BLOCK.finditer(page.read_text()))) == 1
    run(page)
