"""Walks through the house: the files of kinodex in which a function runs while something is done, children included."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("kinodex", "pipeline", "index", "agent", "jobs")


class Recorder:
    """A profile function that notes the files of the functions that it sees called; bodies of modules do not count."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._codes: set[Any] = set()

    def see(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or code in self._codes or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        path = code.co_filename
        if not path.endswith(".py") or not _room(path):
            self._codes.add(code)
        elif not _while_importing(frame):
            self._codes.add(code)
            self.files.add(_below_root(path))

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def write(self, log: Path) -> None:
        self.stop()
        with log.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in self.files)


def _while_importing(frame: FrameType) -> bool:
    """True if the call comes from the body of a module of ours, which runs once, whenever it is first imported."""
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_name == "<module>" and _room(caller.f_code.co_filename):
            return caller.f_globals.get("__name__") != "__main__"  # as which a child's own module runs
        caller = caller.f_back
    return False


def _below_root(path: str) -> str:
    """A path as the checkout has it: the rooms are imported by their links in kinodex."""
    name = path.removeprefix(f"{ROOT}{os.sep}")
    inner = name.removeprefix(f"kinodex{os.sep}")
    return inner if inner.partition(os.sep)[0] in ROOMS[1:] else name


def _room(path: str) -> str:
    """The room of a source file, or nothing if it is in none."""
    name = _below_root(path)
    room = name.partition(os.sep)[0]
    return room if name != path and room in ROOMS else ""


def walk(what: str, folder: Path) -> set[str]:
    """Run a function of a walk in a Python of its own, and give the files through which it and its children go.

    `what` is "module:function", which is called with `folder`. In the process of the tests the walk would be shorter by
    what an earlier test left in a cache.
    """
    module, _, function = what.partition(":")
    log, site = folder / "walk.txt", Path(__file__).with_name("walk_site")
    code = f"from pathlib import Path; from {module} import {function}; {function}(Path({str(folder)!r}))"
    paths = os.pathsep.join([str(site), str(ROOT)])  # a child that reads videos is given its parent's path
    environment = {**os.environ, "KINODEX_WALK": str(log), "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    return set(log.read_text(encoding="utf-8").split())
