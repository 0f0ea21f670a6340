"""The house keeps its shape: which room may import which, and that nothing heavy loads before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = {"pipeline": set(), "index": set(), "agent": {"index"}, "jobs": {"pipeline", "index", "agent"}}
HOME = {"lancedb": "index", "lance": "index", "ray": "jobs", "trl": "jobs", "av": "pipeline", "decord": "pipeline"}


def imports(path: Path) -> list[str]:
    """Every module that a file imports, anywhere in it; relative imports are given as their room."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} uses a relative import"
            found.append(node.module or "")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_upward(root: Path, room: str) -> None:
    files = sorted((root / room).rglob("*.py"))
    assert files
    for path in files:
        for module in imports(path):
            head = module.partition(".")[0]
            if head in ROOMS and head != room:
                assert head in ROOMS[room], f"{path}: {room} must not import {module}"
            if head in HOME:
                assert HOME[head] == room, f"{path}: {head} belongs to {HOME[head]}"


def modules_after(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter once `code` has run."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.splitlines()}


RUN_HELP = """
import sys
from jobs.cli.main import main
sys.argv = ["kinodex", "--help"]
try:
    main()
except SystemExit as done:
    assert done.code == 0
"""


def test_help_loads_nothing_heavy() -> None:
    heavy = {"torch", "ray", "lancedb", "transformers", "open_clip", "av", "pyarrow", "openai", "PIL", "numpy"}
    assert not heavy & modules_after(RUN_HELP)


def test_a_library_is_read_without_decoder_or_ray() -> None:
    code = "import index.library, index.search.search, agent.ask_questions, agent.models.rulebased.model, agent.models.openai_compatible"
    assert not {"av", "ray", "pipeline", "jobs"} & modules_after(code)
