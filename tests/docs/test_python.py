"""The Python of docs/python.md, recipes.md and variant.md runs as it stands there, and prints what the pages say."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.catalogue import find_variant
from kinodex.jobs.eval.contenders import parse_contenders
from tests.support.servers.chat_server import ChatServer

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```(?:\n\n```text\n(?P<printed>.*?)^```)?", re.MULTILINE | re.DOTALL)
SERVED = 'base_url="http://localhost:8000/v1"'
ANSWER = {"action": "answer", "option": "B", "answer": None, "evidence": [1]}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server in the place of the language model of the pages."""
    with ChatServer(lambda body: ANSWER, models=("Qwen/Qwen2.5-VL-7B-Instruct",)) as server:
        yield server


@pytest.fixture
def folder(root: Path, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the pages are written, with `films`, as a sample leaves it, and the tests of a checkout."""
    (tmp_path / "films").symlink_to(films)
    (tmp_path / "tests").symlink_to(root / "tests")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(page: Path) -> dict[str, Any]:
    """The names of a page after all its blocks; each must print what the text block right after it shows."""
    text, names = page.read_text(), {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        printed, line = io.StringIO(), text[: block.start()].count("\n") + 1
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block["code"], str(page), "exec"), names)
        assert printed.getvalue() == (block["printed"] or ""), f"{page.name}, line {line}"
    return names


@pytest.mark.slow
def test_from_python(root: Path, folder: Path, server: ChatServer) -> None:
    page = folder / "python.md"
    text = (root / "docs" / "python.md").read_text()
    assert text.count(SERVED) == 2
    page.write_text(text.replace(SERVED, f'base_url="{server.base_url}"'))
    names = run(page)
    assert (server.problems, len(server.seen)) == ([], 1)
    assert len(server.seen[0].frames) == names["answer"].ledger.frames == 16


@pytest.mark.slow
def test_recipes(root: Path, folder: Path) -> None:
    page = root / "docs" / "recipes.md"
    assert len(list(BLOCK.finditer(page.read_text()))) == 1
    run(page)


def test_a_variant_of_ones_own(root: Path, folder: Path, library: Path) -> None:
    (folder / "library").symlink_to(library)
    page = root / "docs" / "variant.md"
    first = BLOCK.search(page.read_text())
    assert first
    (folder / "topk.py").write_text(first["code"])
    assert first["code"].startswith("# topk.py\n")
    assert len(first["code"].splitlines()) < 40
    run(page)
    assert find_variant("topk.py:TOPK").needs_pictures
    names = [each.name for each in parse_contenders(["topk.py:beside-s=0", "eea"], ablations=True, controls=False)]
    assert names[:2] == ["topk:beside-s=0", "topk:beside-s=0, nothing beside"]
