"""The house keeps its shape: who may import whom, one name for each module, plain docstrings, and what loads when."""

from __future__ import annotations

import ast
import re
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
BENEATH = ("errors", "redaction")
"""Files of the front room that lie beneath all rooms: the root of all errors, and what keeps secrets out of them."""
HOME = {
    "lancedb": ("kinodex", "tests"),
    "lance": ("index",),
    "ray": ("jobs", "kinodex"),
    "trl": ("jobs",),
    "av": ("pipeline",),
    "decord": ("pipeline",),
}
"""The rooms that may import a library; LanceDB reads our tables too, and `kinodex/lancedb.py` is for its users."""
NOT_PLAIN = re.compile(r"(What|Whatever|Whether|Whoever|Who|How)\b")
NOUN = re.compile(r"(?:The|An?|True|False|All|One|Number of|Name of|Times of)\b.*")
"""Beginnings of docstrings that say what is returned, without "Return"."""
MAY_BE_WRONG = re.compile(
    rf'^\s*(?:from|import)\s+(?:{"|".join(ROOMS[:-1])})\b|"""\s*{NOT_PLAIN.pattern}', re.MULTILINE
)
"""A line in a file whose syntax is worth a look: to parse all tests takes seconds."""


@pytest.fixture(scope="module")
def sources(root: Path) -> list[Source]:
    return read_sources(root)


@pytest.fixture(scope="module")
def every_source(root: Path, sources: list[Source]) -> list[Source]:
    """The project's files, and of the tests those that may be wrong."""
    tests = read_sources(root, "tests")
    assert len(tests) > 300
    return [*sources, *(source for source in tests if MAY_BE_WRONG.search(source.text))]


def room_of(module: str, name: str | None) -> str:
    """The room of an import, or nothing: `kinodex.index.rows`, or `from kinodex import index`."""
    parts = [*module.split("."), name or ""]
    return "" if parts[0] != "kinodex" or parts[1] in BENEATH else parts[1] if parts[1] in ROOMS else "kinodex"


@pytest.mark.slow
def test_no_room_is_imported_by_its_bare_name(every_source: list[Source]) -> None:
    """It would load each module a second time, with classes that are not those of kinodex."""
    wrong = [
        f"{source.path} imports {module}"
        for source in every_source
        for module, _ in source.imports
        if module.partition(".")[0] in ROOMS[:-1]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_no_room_imports_upward(sources: list[Source]) -> None:
    wrong = []
    for source in sources:
        if source.path.name.startswith("peer_"):  # programs in the place of other people's, each a process of its own
            continue
        room = source.path.parts[0]
        for module, name in source.imports:
            head = room_of(module, name) or module.removeprefix("kinodex.").partition(".")[0]
            if (head in ABOVE and head != room and head not in ABOVE[room]) or room not in HOME.get(head, (room,)):
                wrong.append(f"{source.path} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_acceptance_tests_import_kinodex_alone(root: Path) -> None:
    """So that they stay as they are, whatever is changed inside."""
    inner = [
        f"{source.path} imports {module}"
        for source in read_sources(root, "tests/acceptance")
        for module, _ in source.imports
        if module.startswith("kinodex.")
    ]
    assert not inner, "\n".join(inner)


def test_arrows_between_floors_are_those_of_the_list(root: Path, sources: list[Source]) -> None:
    allowed = read_arrows((root / "tests" / "data" / "arrows.txt").read_text(encoding="utf-8"))
    drawn = {floor: others for floor, others in floor_graph(sources).items() if others}
    new = {floor: others - allowed.get(floor, frozenset()) for floor, others in drawn.items()}
    gone = {floor: others - drawn.get(floor, frozenset()) for floor, others in allowed.items()}
    assert {floor: others for floor, others in new.items() if others} == {}, "not in tests/data/arrows.txt"
    assert {floor: others for floor, others in gone.items() if others} == {}, "in tests/data/arrows.txt for nothing"


def test_there_is_no_circle_of_modules_or_floors(sources: list[Source]) -> None:
    assert circles(module_graph(sources, types=True)) == [], "imports for types count too"
    assert circles(floor_graph(sources)) == []


def test_every_folder_says_what_lives_there(sources: list[Source]) -> None:
    said = {source.path.parent: ast.get_docstring(source.tree) or "" for source in sources if source.is_init}
    folders = {source.path.parent for source in sources}
    silent = sorted(str(folder) for folder in folders if len(said.get(folder, "").splitlines()) < 2)
    assert not silent, "\n".join(silent)


@pytest.mark.slow
def test_docstrings_begin_with_a_plain_sentence(every_source: list[Source]) -> None:
    wrong = []
    for source in every_source:
        for node in source.documented():
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if NOT_PLAIN.match(first):
                wrong.append(f"{source.path}:{getattr(node, 'lineno', 1)} {first}")
    assert not wrong, "\n".join(wrong)


def test_docstrings_of_functions_begin_with_a_verb(sources: list[Source]) -> None:
    nouns = [
        f"{source.path}:{node.lineno} {found[0]}"
        for source in sources
        for node in source.documented()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("property" in ast.unparse(each) for each in node.decorator_list)
        and (found := NOUN.match(ast.get_docstring(node) or ""))
    ]
    assert not nouns, "\n".join(nouns)


def test_rooms_are_those_of_the_project(root: Path) -> None:
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    assert packages - {"tests"} == set(ROOMS)
