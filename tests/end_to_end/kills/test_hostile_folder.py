"""Commands, started in a folder whose files bear the names of all modules that Python could import: none runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.servers.ray_node import environment
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN

pytestmark = pytest.mark.slow
OURS = ("agent", "index", "jobs", "kinodex", "pipeline")
TRAP = """import os
with open({log!r}, "a") as log:
    log.write(f"{{__name__}} {{os.getpid()}}\\n")
raise ImportError(f"{{__name__}} of the working directory was imported")
"""
LAUNCHER = """import json, sys
from kinodex.cli.main import main
if __name__ == "__main__":
    for line in json.loads(sys.argv.pop(1)):
        sys.argv[1:] = line
        try:
            main()
        except SystemExit as done:
            print("exit code", done.code or 0, "of", line[0], flush=True)
"""
QUESTION = "What colour is the bird at sea?"


class Trap:
    """A folder of hostile names, and a script outside of it, as `pip` installs one, that is started there."""

    def __init__(self, place: Path, root: Path) -> None:
        self.folder, self.log, self._script = place / "downloads", place / "imported", place / "bin" / "kinodex"
        self.out = place / "out"
        self.folder.mkdir()
        self._script.parent.mkdir()
        self._script.write_text(LAUNCHER)
        names = {*sys.stdlib_module_names, *packages_distributions(), *OURS, "sitecustomize", "usercustomize"}
        for name in filter(str.isidentifier, names):
            (self.folder / f"{name}.py").write_text(TRAP.format(log=str(self.log)))
        self.environment = environment() | {"PYTHONPATH": str(root), "KINODEX_CACHE": str(place), "HOME": str(place)}
        self.environment.pop("PYTHONSAFEPATH", None)

    def start(self, *lines: Sequence[object]) -> subprocess.Popen[str]:
        """Start one process that runs these command lines one after another."""
        command = [sys.executable, str(self._script), json.dumps([list(map(str, line)) for line in lines])]
        with self.out.open("w") as out:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
            )

    def codes(self) -> dict[str, int]:
        """The exit code of each command that has run."""
        said = re.findall(r"^exit code (\d+) of (\S+)$", self.out.read_text(), re.MULTILINE)
        return {name: int(code) for code, name in said}

    @property
    def imported(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def trap(tmp_path: Path, root: Path) -> Iterator[Trap]:
    trap = Trap(tmp_path, root)
    yield trap
    assert trap.imported == ""


def test_a_file_of_the_working_directory_would_be_imported(trap: Trap) -> None:
    """The trap works: without its mend Python starts a child just so."""
    subprocess.run(
        [sys.executable, "-c", "import av"], cwd=trap.folder, env=trap.environment, capture_output=True, check=False
    )
    assert trap.imported.startswith("av ")
    trap.log.unlink()


EVALUATED = ("--agent", "uniform", "--workers", 2, "--limit", 2)
COMMAND_LINES: dict[str, tuple[object, ...]] = {
    "ingest": ("{short_films}/film-01.mp4", "--library", "made", "--space", DRAWN),
    "search": ("{library}", "a bird"),
    "maintain": ("{library}",),
    "doctor": (),
    "ask": ("{library}", QUESTION, "--video", "film-01"),
    "eval": (SKETCHES, "{library}", "--annotations", "{films}/questions.jsonl", "--out", "made", *EVALUATED),
    "export": ("clips", "{library}", "cut", "--video", "film-01", "--from", 1, "--to", 2, "--exact"),
    "no-such-command": (),
    "serve": ("{library}", "--port", 0, "--no-browser"),
}
"""Words of command lines that start processes or open models; one that is not there imports all the others, for the
names that are near."""
REFUSED = {"doctor": (0, 1, 3), "no-such-command": (2,)}
"""Exit codes of those that do not end with 0."""


def test_no_command_imports_it(trap: Trap, films: Path, short_films: Path, library: Path) -> None:
    """The last of them is `serve`, of which a clip, a stream and an answer are had."""
    places = {"films": films, "short_films": short_films, "library": library}
    lines = [[name, *(str(each).format(**places) for each in line)] for name, line in COMMAND_LINES.items()]
    video = Library.open(str(library)).video("film-01").video_id
    with trap.start(*lines) as process:
        assert process.stderr is not None
        words = (word for line in process.stderr for word in line.split())
        address = next((word for word in words if word.startswith("http://127.0.0.1")), None)
        assert address is not None, trap.out.read_text()
        for path in (
            f"data/libraries/0/export/clip?video={video}&ranges=1-2",
            f"data/libraries/0/videos/{video}/playback",
            f"media/0/{video}/stream?way=transcoded&from=28",
        ):
            with urllib.request.urlopen(address + path, timeout=120) as reply:
                assert (reply.status, len(reply.read()) > 0) == (200, True)
        body = json.dumps({"model": "library", "messages": [{"role": "user", "content": QUESTION}]}).encode()
        asked = urllib.request.Request(f"{address}v1/chat/completions", body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=120) as reply:
            assert json.load(reply)["choices"]
        process.send_signal(signal.SIGINT)
        process.communicate()
    codes = trap.codes()
    assert codes.keys() == COMMAND_LINES.keys()
    assert {name: code for name, code in codes.items() if code not in REFUSED.get(name, (0,))} == {}


@pytest.mark.ray
def test_workers_of_ray_do_not_import_it(trap: Trap, short_films: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    trap.environment["RAY_TMPDIR"] = os.environ.get("RAY_TMPDIR", "/tmp")
    line = ["ingest", short_films / "film-01.mp4", "--library", tmp_path / "made", "--space", DRAWN, "--ray"]
    with trap.start(line) as process:
        _, errors = process.communicate()
    assert trap.codes() == {"ingest": 0}, errors
