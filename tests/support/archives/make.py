"""Make an archive of a library, a trace of each agent, cached replies and a run, by the commands of this checkout.

python -m tests.support.archives.make tests/data/NAME.tar.xz
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.archives.read import AGENTS, SERVER, trace_name
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN

FILM = "film-01"
CACHE_FILE = "replies.sqlite"
PORT = int(SERVER.rpartition(":")[2].removesuffix("/v1"))
SIDE_PX = 96
AT_SERVER = ("--model", MODEL, "--base-url", SERVER)
ENTRIES = ("library", CACHE_FILE, "run")


def make(folder: Path) -> None:
    """Fill a folder with what an archive holds, and with the films and the cache that it was made by."""
    drawn = ("--hours", "0.01", "--seed", "5", "--form", "independent")
    subprocess.run([sys.executable, "-m", "tests.world.sample", str(folder / "films"), *drawn], check=True)
    lines = (folder / "films" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [each for each in map(json.loads, lines) if each["video"] == f"{FILM}.mp4"]
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in questions), encoding="utf-8")
    film, small = f"films/{FILM}.mp4", f"jpeg_side_px={SIDE_PX}"
    space = ("--space", DRAWN, "--no-text-tower")  # which `unpack` lays beside it: it would be nine tenths of the file
    kinodex(folder, "ingest", film, "--library", "library", *space, "--set", small)
    ask(folder, questions[0], "eea", "--trace", "eea-builtin.jsonl")
    with RuleServer(Rules(), port=PORT):
        kinodex(folder, "add", "captions", "library", *AT_SERVER)
        for agent in AGENTS:
            ask(folder, questions[1], agent, *AT_SERVER, "--trace", f"{trace_name(agent)}.jsonl")
    shutil.copy(SKETCHES, folder / "sketch.py")
    run = ("eval", "run", "sketch.py", "library", "--annotations", "films/questions.jsonl", "--out", "run", "--no-page")
    kinodex(folder, *run, "--agent", "eea", "--agent", "uniform")
    (folder / "cache" / CACHE_FILE).rename(folder / CACHE_FILE)


def ask(folder: Path, question: Mapping[str, Any], agent: str, *options: object) -> None:
    """Ask a copy of the library: what agents keep in it would spare the next one requests."""
    shutil.copytree(folder / "library", folder / "copy")
    choices = [part for choice in question["options"] for part in ("--option", choice)]
    kinodex(folder, "ask", "copy", question["question"], *choices, "--agent", agent, *options)
    shutil.rmtree(folder / "copy")


def kinodex(folder: Path, *arguments: object) -> None:
    """Run a command in a folder, with a response cache of its own; raise `CalledProcessError` if it fails."""
    command = [str(Path(sys.executable).with_name("kinodex")), *map(str, arguments)]
    subprocess.run(command, cwd=folder, env={**os.environ, "KINODEX_CACHE": str(folder / "cache")}, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    archive = parser.parse_args().archive.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        with tarfile.open(archive, "w:xz") as file:
            for entry in sorted((*ENTRIES, *(path.name for path in folder.glob("*.jsonl")))):
                file.add(folder / entry, entry)
    print(f"{archive}: {archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
