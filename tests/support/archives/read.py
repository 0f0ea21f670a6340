"""An archive unpacked, its questions asked again, and the report of its run made again."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

from tests.support.command import Kinodex, Ran
from tests.world.drawn_space import put_towers

SERVER = "http://127.0.0.1:8731/v1"
"""Where the model was that wrote the cached replies; nothing listens there."""
AGENTS = ("eea", "longvideoagent", "vca", "videoagent", "videoagent2", "videoseek", "videotree")


def trace_name(agent: str) -> str:
    """Name the trace of an agent that the model `rules` led."""
    return f"{agent}-rules"


TRACES = (*map(trace_name, AGENTS), "eea-builtin")


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive into a folder, with the towers of its space; tests that write take a copy of what they need."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    put_towers(folder / "library")
    return folder


def events_of(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]


def answer_of(trace: Path) -> dict[str, Any]:
    answer: dict[str, Any] = events_of(trace)[-1]["answer"]
    return answer


def run_ask(kinodex: Kinodex, library: Path, trace: Path, *options: object) -> Ran:
    """Ask a trace's question by its agent."""
    started = events_of(trace)[0]
    question = started["question"]
    choices = [part for choice in question["options"] for part in ("--option", choice)]
    return kinodex("ask", library, question["text"], *choices, "--agent", started["agent"], "--json", *options)


def ask(kinodex: Kinodex, library: Path, trace: Path, *options: object) -> dict[str, Any]:
    """The answer to a trace's question by its agent."""
    ran = run_ask(kinodex, library, trace, *options)
    assert ran.code == 0, ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def run_again(kinodex: Kinodex, archive: Path, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the report of the run again, in a copy at `folder`; the new one, and that of the archive."""
    run = shutil.copytree(archive / "run", folder)
    ran = kinodex("eval", "report", run, "--no-page", "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out), json.loads((archive / "run" / "report.json").read_text(encoding="utf-8"))
