"""The house keeps its shape: who may import whom, sizes, names of tests, plain docstrings, and what loads when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.house.arrows import read_arrows
from tests.support.house.source_tree import ROOMS, Source, circles, floor_graph, module_graph, read_sources

ABOVE = {
    "pipeline": set(),
    "index": set(),
    "agent": {"index"},
    "jobs": {"pipeline", "index", "agent"},
    "kinodex": {"pipeline", "index", "agent", "jobs"},
}
"""For each room the rooms that it may import."""
HOME = {"lancedb": "tests", "lance": "index", "ray": "jobs", "trl": "jobs", "av": "pipeline", "decord": "pipeline"}
"""The room that may import a library; LanceDB, which reads our tables too, is for the tests that hold it to that."""
FILE_LINES, FUNCTION_LINES = 400, 60
ROOM_MODULES, FOLDER_MODULES = 12, 16
LOGIC_LINES = 30
"""A module with more lines of function bodies than this has a test file of its own."""
TESTED_ELSEWHERE = {
    "kinodex/sketch/drawings.py": "tests/jobs/synthetic/world/test_sprites.py draws every thing",
    "kinodex/sketch/drawings.py": "the same",
    "kinodex/sketch/drawings.py": "the same",
    "kinodex/web/play.py": "tests/jobs/serve/play/test_routes.py plays a file in each of its states",
}
"""Modules with logic and without a test file of their own, each with the reason and the place of its tests."""
BESIDE_THE_MIRROR = {"end_to_end", "docs", "support"}
"""Folders of tests that mirror no folder of the project."""
NO_MODULE = {"test_exported_names", "test_kept_answers", "test_one_item"}
"""Test files of a folder, not of one of its modules."""
NOT_PLAIN = re.compile(r"(What|Whatever|Whether|Whoever|Who|How)\b")


@pytest.fixture(scope="module")
def sources(root: Path) -> list[Source]:
    return read_sources(root)


@pytest.fixture(scope="module")
def every_source(root: Path, sources: list[Source]) -> list[Source]:
    """The project's files and the tests."""
    return [*sources, *read_sources(root, "tests")]


@pytest.fixture(scope="module")
def modules(sources: list[Source]) -> list[Source]:
    return [source for source in sources if not source.is_init]


@pytest.fixture(scope="module")
def test_files(root: Path) -> set[Path]:
    return {path.relative_to(root / "tests") for path in (root / "tests").rglob("test_*.py")}


def test_no_room_imports_upward(sources: list[Source]) -> None:
    wrong = []
    for source in sources:
        room = source.path.parts[0]
        for module, _ in source.imports:
            head = module.partition(".")[0]
            if (head in ABOVE and head != room and head not in ABOVE[room]) or HOME.get(head, room) != room:
                wrong.append(f"{source.path} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_arrows_between_floors_are_those_of_the_list(root: Path, sources: list[Source]) -> None:
    allowed = read_arrows((root / "tests" / "data" / "arrows.txt").read_text(encoding="utf-8"))
    drawn = {floor: others for floor, others in floor_graph(sources).items() if others}
    new = {floor: others - allowed.get(floor, frozenset()) for floor, others in drawn.items()}
    gone = {floor: others - drawn.get(floor, frozenset()) for floor, others in allowed.items()}
    assert {floor: others for floor, others in new.items() if others} == {}, "not in tests/data/arrows.txt"
    assert {floor: others for floor, others in gone.items() if others} == {}, "in tests/data/arrows.txt for nothing"


def test_there_is_no_circle_of_modules_or_floors(sources: list[Source]) -> None:
    assert circles(module_graph(sources)) == []
    assert circles(floor_graph(sources)) == []


def test_files_and_functions_are_short(every_source: list[Source]) -> None:
    long = [f"{source.path}: {source.lines} lines" for source in every_source if source.lines > FILE_LINES]
    for source in every_source:
        for function in source.functions():
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > FUNCTION_LINES:
                long.append(f"{source.path}:{function.lineno} {function.name}: {lines} lines")
    assert not long, "\n".join(long)


def test_folders_are_small(every_source: list[Source]) -> None:
    counts = Counter(source.path.parent for source in every_source if not source.is_init)
    limits = {folder: ROOM_MODULES if str(folder) in ROOMS else FOLDER_MODULES for folder in counts}
    assert {str(folder): count for folder, count in counts.items() if count > limits[folder]} == {}


def test_every_folder_says_what_lives_there(sources: list[Source]) -> None:
    said = {source.path.parent: ast.get_docstring(source.tree) or "" for source in sources if source.is_init}
    folders = {source.path.parent for source in sources}
    silent = sorted(str(folder) for folder in folders if len(said.get(folder, "").splitlines()) < 2)
    assert not silent, "\n".join(silent)


def test_docstrings_begin_with_a_plain_sentence(every_source: list[Source]) -> None:
    wrong = []
    for source in every_source:
        for node in source.documented():
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if NOT_PLAIN.match(first):
                wrong.append(f"{source.path}:{getattr(node, 'lineno', 1)} {first}")
    assert not wrong, "\n".join(wrong)


def test_every_test_file_is_that_of_a_module(root: Path, test_files: set[Path]) -> None:
    strangers = []
    for path in sorted(test_files):
        module = root / path.with_name(path.name.removeprefix("test_"))
        elsewhere = path.parts[0] in BESIDE_THE_MIRROR or path.stem in NO_MODULE
        if not elsewhere and not module.is_file():
            strangers.append(str(path))
    assert not strangers, "\n".join(strangers)


def test_every_module_with_logic_has_its_test_file(modules: list[Source], test_files: set[Path]) -> None:
    untested = {
        str(source.path)
        for source in modules
        if source.path.with_name(f"test_{source.path.name}") not in test_files and source.logic_lines() > LOGIC_LINES
    }
    assert not untested - TESTED_ELSEWHERE.keys(), "\n".join(sorted(untested - TESTED_ELSEWHERE.keys()))
    assert not TESTED_ELSEWHERE.keys() - untested, "has its test file by now, or is gone"


def modules_after(code: str) -> set[str]:
    """The top-level modules in a fresh interpreter once `code` has run."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.splitlines()}


RUN_HELP = """
import sys
from kinodex.cli.main import main
sys.argv = ["kinodex", "--help"]
try:
    main()
except SystemExit as done:
    assert done.code == 0
"""


def test_help_loads_nothing_heavy() -> None:
    heavy = {"torch", "ray", "lance", "transformers", "open_clip", "av", "pyarrow", "openai", "PIL", "numpy"}
    assert not heavy & modules_after(RUN_HELP)


def test_a_library_is_read_without_decoder_or_ray() -> None:
    names = ("kinodex.index.library", "kinodex.index.search.search", "agent", "kinodex.agent.models.rules")
    code = f"import {', '.join(names)}, kinodex.agent.ask, kinodex.agent.models.openai_model"
    assert not {"av", "ray", "pipeline", "jobs"} & modules_after(code)


def test_rooms_are_those_of_the_project(root: Path) -> None:
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    assert packages - {"tests"} == set(ROOMS)
