"""The three walks of docs/architecture.md name just the files through which a frame, a question and an item go."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.house.walks import walk
from tests.support.servers.rule_server import Rules, RuleServer

pytestmark = pytest.mark.slow

WALKERS = "tests.support.house.walkers"


def files_of(root: Path, title: str) -> set[str]:
    """The files that a section of the page names, in rows of a folder and its modules."""
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split(f"\n### {title}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `([\w/]+)` \| ([\w, ]+) \|", section, re.MULTILINE)
    return {f"{folder}/{name}.py" for folder, names in rows for name in names.split(", ")}


def test_a_frame_from_file_to_row(root: Path, films: Path, tmp_path: Path) -> None:
    shutil.copy(films / "film-01.mp4", tmp_path)  # without the subtitles beside it
    assert walk(f"{WALKERS}:index_a_film", tmp_path) == files_of(root, "A frame from file to row")


def test_a_question_through_kino(root: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "library").symlink_to(library)
    with RuleServer(Rules()) as server:  # in this process: the walk is one of another
        (tmp_path / "base_url.txt").write_text(server.base_url, encoding="utf-8")
        assert walk(f"{WALKERS}:ask_a_question", tmp_path) == files_of(root, "A question through kino")


def test_an_item_of_a_benchmark(root: Path, films: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "library").symlink_to(library)
    shutil.copy(films / "questions.jsonl", tmp_path)
    assert walk(f"{WALKERS}:score_items", tmp_path) == files_of(root, "An item of a benchmark")
