"""Examples of README and pages print of the demo's library what stands beside them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kinodex import open as front
from kinodex.demo.films import shots
from kinodex.example_searches import SCENES
from kinodex.index.library import Library
from tests.support.command import Kinodex, main
from tests.support.house.once import made_once

pytestmark = pytest.mark.slow
KINODEX = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]
PLACE = re.compile(r"(?:/home/me|/dev/shm|/tmp)[\w./-]*/demo/library|(?<![\w/])demo/library")
VARIES = {
    r"\b[0-9a-f]{32}\b": "ID",
    r"\b\d+(?:\.\d+)? s\b": "N s",
    r'seconds":[\d.]+': 'seconds":N',
    r"\b0\.\d+\b": "N",
    r" +\n": "\n",
}
"""What differs between two runs or machines: ids, seconds, cosines (of 8-bit weights); and the ends of lines."""


@dataclass(frozen=True)
class Demo:
    """The folder that `demo` lies in, and what was printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    def make(folder: Path) -> None:
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch, printed() as out:
            patch.chdir(folder)
            patch.setenv("COLUMNS", "200")
            patch.setenv("KINODEX_CACHE", str(folder / "cache"))
            patch.setattr(sys, "argv", ["kinodex", "demo"])
            with pytest.raises(SystemExit, match="0"):
                main()
        (folder / "printed.txt").write_text(out.getvalue())

    folder = made_once(tmp_path_factory, "printed", make)
    return Demo(folder, (folder / "printed.txt").read_text())


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """Collect this process's standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        yield out


def run(code: str) -> str:
    """Run the code of a page in this process; return what it prints on standard output."""
    with printed() as out:
        exec(code, {"__name__": "__main__"})
    return out.getvalue()


def same(text: str) -> str:
    """Return a text without what differs between two runs."""
    for pattern, name in VARIES.items():
        text = re.sub(pattern, name, text)
    return PLACE.sub("LIBRARY", text)


def test_every_command_that_the_demo_prints_gives_what_stands_below_it(
    demo: Demo, kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo.folder)
    steps = re.findall(r"^\d+\. kinodex (.+)\n((?:.+\n)+)", demo.printed, re.MULTILINE)
    assert [step.split()[0] for step, _ in steps] == ["ingest", "search", "search", "search", "ask", "ask"]
    for command, below in steps[1:]:
        again = kinodex(*shlex.split(command))
        assert (again.code, same(again.out)) == (0, same(re.sub(r"truth .*\n", "", below))), command
    assert len(Library.open(str(demo.folder / "demo" / "library")).videos()) == 3
    assert (demo.folder / "demo" / "frames.jpg").read_bytes()[:2] == b"\xff\xd8"


def test_the_verdicts_of_the_demo_are_those_of_its_films(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo.folder)
    truths = re.findall(r"^truth .* (\w+) (\d:\d\d\.\d) to (\d:\d\d\.\d): right$", demo.printed, re.MULTILINE)
    firsts = re.findall(r"cosine +video.*\n(\d:\d\d\.\d) +\S+ +(\w+)", demo.printed)
    assert len(firsts) == 3
    for (time, video), (film, start, end) in zip(firsts, truths[:3], strict=True):
        assert video == film and start <= time < end
    with front("demo/library") as library:
        wrong = [
            shot.words
            for shot in shots().values()
            for hit in library.search(shot.words, k=1)
            if (hit.title, shot.start_s <= hit.time_s < shot.end_s) != (shot.film, True)
        ]
    assert f"14 photographs, {14 - len(wrong)} are right; not so: {', '.join(map(repr, wrong))}" in demo.printed


def test_the_demo_of_films_of_ones_own(demo: Demo, kinodex: Kinodex, tmp_path: Path) -> None:
    """No verdict is printed: nobody knows what is true."""
    ran = kinodex("demo", demo.folder / "demo" / "films", "--out", tmp_path)
    assert (ran.code, "truth" in ran.out) == (0, False)
    searches = re.findall(r"kinodex search \S+/own (?:'([^']+)'|(\w+)) -k 3", ran.out)
    assert len(searches) == 3
    assert {each or other for each, other in searches} <= set(SCENES.read_text().splitlines())
    assert (tmp_path / "own-frames.jpg").exists()
    assert ran.out.count(" ask ") == 2


def test_the_readme_shows_what_the_demo_prints(demo: Demo, root: Path) -> None:
    (block,) = re.findall(r"```text\n(6\. kinodex search.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert same(block.strip()) in same(demo.printed)
    (right,) = re.findall(r"questions, one for each of the 14 photographs, (\d+) are right", demo.printed)
    assert f"{right} of 14 are right" in (root / "README.md").read_text()


def test_the_python_of_the_readme_prints_what_stands_beside_it(
    demo: Demo, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo.folder)
    code = (root / "README.md").read_text().split("```python\n")[1].split("```")[0]
    (beside,) = re.findall(r"print\(.*#\s(.*)$", code, re.MULTILINE)
    assert run(code).strip() == beside


def test_the_example_of_the_page_of_mcp_prints_what_stands_below_it(
    demo: Demo, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo.folder)
    page = (root / "docs" / "mcp.md").read_text()
    code = page.partition("Trying it without an assistant")[2].split("```python\n")[1].split("```")[0]
    below = page.partition("prints (with lines broken here)")[2].split("```")[1]
    server = {"command": KINODEX[0], "args": [*KINODEX[1:], "mcp", "demo/library"], "cwd": str(demo.folder)}
    (demo.folder / "films.json").write_text(json.dumps({"mcpServers": {"films": server}}))
    found = run(code)
    replies = re.sub(r"\n\s*", "", re.sub(r"serving .*\n", "", below)).replace("}{", "}\n{")
    assert same(found.strip()) == same(replies)
