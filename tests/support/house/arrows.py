"""Print the arrows between the floors of the house as the sources are, for `tests/data/arrows.txt`.

    python -m tests.support.house.arrows > tests/data/arrows.txt

Look at what changed before it is committed: a name more on a line is a new dependency between two parts of the project.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.house.source_tree import Graph, floor_graph, read_sources

ARROW = " -> "
HEAD = """\
# Which floor may import which; nothing else may (tests/end_to_end/test_house.py). A floor is a folder without
# sub-folders, or a module that lies beside sub-folders. Imports inside functions count, those for types alone do not.
# `python -m tests.support.house.arrows` prints this file as the sources are.
"""


def written(graph: Graph) -> str:
    """The arrows as text, one floor a line."""
    lines = [f"{floor}{ARROW}{' '.join(sorted(others))}\n" for floor, others in sorted(graph.items()) if others]
    return "".join([HEAD, *lines])


def read_arrows(text: str) -> Graph:
    """The arrows that a text allows."""
    pairs = (line.split(ARROW) for line in text.splitlines() if ARROW in line and not line.startswith("#"))
    return {floor: frozenset(others.split()) for floor, others in pairs}


if __name__ == "__main__":
    print(written(floor_graph(read_sources(Path(__file__).resolve().parents[3]))), end="")
