"""Four lines of film talk in each of thirteen scripts, and a word of the first of them that no other has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "data" / "scripts.txt"


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    word: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def read_scripts(text: str) -> tuple[Script, ...]:
    """Read blocks of a name with its word, and lines."""
    found = []
    for block in text.split("\n\n")[1:]:
        head, *lines = block.splitlines()
        name, word = head.split()
        found.append(Script(name, word, tuple(lines)))
    return tuple(found)


SCRIPTS = read_scripts(FILE.read_text(encoding="utf-8"))
