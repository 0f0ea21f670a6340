"""The project's sources as text and syntax: modules, folders, who imports whom, docstrings, sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOMS = ("pipeline", "index", "agent", "jobs", "kinodex")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Graph = Mapping[str, frozenset[str]]
"""For each node the nodes that it imports."""


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path
    """Below the project's root."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, which takes longer to walk than to ask."""
        return tuple(ast.walk(self.tree))

    @property
    def module(self) -> str:
        """The name that it is imported by: the rooms are in kinodex, by links."""
        name = ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")
        return f"kinodex.{name}" if self.path.parts[0] in ROOMS[:-1] else name

    @property
    def is_init(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def documented(self) -> Iterator[Documented]:
        """Everything that can have a docstring."""
        yield from (node for node in self.nodes if isinstance(node, Documented))

    @cached_property
    def imports(self) -> tuple[tuple[str, str | None], ...]:
        """Each imported module and, of `from module import name`, the name; also inside functions, not for types."""
        typing = self._typing_only()
        return tuple(each for line, each in self._imports() if line not in typing)

    @cached_property
    def imports_and_types(self) -> tuple[tuple[str, str | None], ...]:
        """The same with those for types."""
        return tuple(each for _, each in self._imports())

    def _imports(self) -> Iterator[tuple[int, tuple[str, str | None]]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, (alias.name, None)) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.path} uses a relative import"
                yield from ((node.lineno, (node.module or "", alias.name)) for alias in node.names)

    def _typing_only(self) -> set[int]:
        """Line numbers under `if TYPE_CHECKING`."""
        conditions = (node for node in self.nodes if isinstance(node, ast.If))
        blocks = [each for node in conditions if _is_for_types(node.test) for each in node.body]
        return {line for each in blocks for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)}


def _is_for_types(condition: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(condition, "id", ""), getattr(condition, "attr", ""))


def read_sources(root: Path, *folders: str) -> list[Source]:
    """Read the Python files below some folders of the project, by default the rooms and the front door."""
    paths = [path for folder in folders or ROOMS for path in sorted((root / folder).rglob("*.py"))]
    return [Source(path.relative_to(root), path.read_text(encoding="utf-8")) for path in paths]


def module_graph(sources: list[Source], *, types: bool = False) -> Graph:
    """Which module imports which, of those that are given; with `types` also for types alone."""
    modules = {source.module for source in sources}
    graph: dict[str, frozenset[str]] = {}
    for source in sources:
        imports = source.imports_and_types if types else source.imports
        named = {f"{module}.{name}" if f"{module}.{name}" in modules else module for module, name in imports}
        graph[source.module] = frozenset(named & modules - {source.module})
    return graph


def floor_graph(sources: list[Source]) -> Graph:
    """Which floor imports which: a floor is a folder without sub-folders, or a module that lies beside sub-folders."""
    floors = floor_of_modules(sources)
    graph: dict[str, set[str]] = {floor: set() for floor in floors.values()}
    for module, others in module_graph(sources).items():
        graph[floors[module]] |= {floors[other] for other in others if "." in other} - {floors[module]}
    return {floor: frozenset(others) for floor, others in graph.items()}


def floor_of_modules(sources: list[Source]) -> dict[str, str]:
    """The floor of each module, as a path below the root."""
    branching = {source.path.parent.parent for source in sources if source.is_init}
    floors = {}
    for source in sources:
        folder = source.path.parent
        floors[source.module] = str(source.path.with_suffix("") if folder in branching else folder)
    return floors


def circles(graph: Graph) -> list[list[str]]:
    """Groups of nodes that reach each other (strongly connected components of more than one node, by Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found
