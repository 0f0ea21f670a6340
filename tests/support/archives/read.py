"""An archive unpacked, its questions asked again, and answers compared with those of its traces."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

from tests.support.command import Kinodex, Ran

SERVER = "http://127.0.0.1:8731/v1"
"""Where the model was that wrote the cached replies; nothing listens there."""
AGENTS = ("eea", "longvideoagent", "vca", "videoagent", "videoagent2", "videoseek", "videotree")
BUILTIN_TRACE = "eea-builtin"
CACHE_FILE = "replies.sqlite"
CLOCK = ("seconds", "model_seconds")


def trace_name(agent: str) -> str:
    """Name the trace of an agent that the model `rules` led."""
    return f"{agent}-rules"


TRACES = (*map(trace_name, AGENTS), BUILTIN_TRACE)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive into a folder; tests that write take a copy of what they write to."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder


def copy_cache(unpacked: Path, folder: Path) -> None:
    """Lay the cached replies where a command looks for them whose cache is in `folder`."""
    folder.mkdir()
    shutil.copy(unpacked / CACHE_FILE, folder)


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


def assert_same_answer(answer: dict[str, Any], trace: Path) -> None:
    """Check that the text, the option, the rounds and the times of the evidence are those of the trace."""
    earlier = answer_of(trace)
    for name in ("status", "text", "option", "rounds", "reason"):
        assert answer[name] == earlier[name], name
    times = [[(each["start_s"], each["end_s"]) for each in one["evidence"]] for one in (answer, earlier)]
    assert times[0] == times[1]


def assert_same_ledger(answer: dict[str, Any], trace: Path) -> None:
    """Check that all but the time that it took is that of the trace."""
    ledger = {name: figure for name, figure in answer_of(trace)["ledger"].items() if name not in CLOCK}
    assert {name: answer["ledger"][name] for name in ledger} == ledger


def assert_all_cached(answer: dict[str, Any], trace: Path) -> None:
    """Check that no request was sent, and no fewer were made than in the trace."""
    calls = answer["ledger"]["calls"]
    assert answer["ledger"]["cached_calls"] == calls >= answer_of(trace)["ledger"]["calls"] > 0


def assert_replayed(kinodex: Kinodex, library: Path, trace: Path) -> None:
    """Check that a trace, as the model, leads its agent to the same answer at the same costs."""
    answer = ask(kinodex, library, trace, "--model", f"replay:{trace}")
    assert_same_answer(answer, trace)
    assert_same_ledger(answer, trace)


def reports_of(kinodex: Kinodex, archive: Path, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the report of the run again, in a copy under `folder`; the new one, and that of the archive."""
    run = shutil.copytree(archive / "run", folder / "run")
    ran = kinodex("eval", "report", run, "--no-page", "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out), json.loads((archive / "run" / "report.json").read_text(encoding="utf-8"))


def assert_shown(kinodex: Kinodex, archive: Path, library: Path, page: Path) -> None:
    """Check that the viewer makes a page of the library, the run and all traces."""
    traces = [archive / f"{name}.jsonl" for name in TRACES]
    ran = kinodex("view", library, archive / "run", *traces, "--out", page)
    assert ran.code == 0, ran.err
    assert "What appears right after the brown keys in the meadow?" in page.read_text(encoding="utf-8")
