"""Count what docs/architecture.md compares: lines, files, headings inside files, commands and options of a checkout.

python -m tests.support.house.counts CHECKOUT [CHECKOUT...]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

ROOMS = ("pipeline", "index", "agent", "jobs", "kinodex")
OPTION = re.compile(r"\btyper\.(?:Option|Argument)\(|\bFlag\(")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, nargs="+")
    for each in parser.parse_args().checkout:
        print(json.dumps({"checkout": each.name, **counts(each)}))


def counts(checkout: Path) -> dict[str, int]:
    """Count the Python files of the rooms and of the tests, and the page of commands."""
    rooms = [text for room in ROOMS for text in _texts(checkout, room)]
    tests, page = _texts(checkout, "tests"), (checkout / "docs" / "commands.md").read_text(encoding="utf-8")
    inner = [headings(text) for text in rooms]
    return {
        "lines of the rooms": sum(text.count("\n") for text in rooms),
        "files of the rooms": len(rooms),
        "lines of tests and what they use": sum(text.count("\n") for text in tests),
        "headings inside files": sum(inner),
        "files with such headings": sum(map(bool, inner)),
        "commands": len(re.findall(r"^\| \[`kinodex", page, re.MULTILINE)),
        "rows of options and arguments in the page of commands": len(re.findall(r"^\| `", page, re.MULTILINE)),
        "options and arguments declared": sum(len(OPTION.findall(text)) for text in rooms),
    }


def headings(text: str) -> int:
    """Count the comments that stand alone between blank lines: each begins another subject."""
    return len(re.findall(r"\n\n# [^\n]*\n(?:#[^\n]*\n)*\n", text))


def _texts(checkout: Path, folder: str) -> list[str]:
    names = subprocess.run(
        ["git", "ls-files", f"{folder}/*.py"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.split()
    files = [checkout / name for name in names]
    return [file.read_text(encoding="utf-8") for file in files if file.is_file() and not file.is_symlink()]


if __name__ == "__main__":
    main()
