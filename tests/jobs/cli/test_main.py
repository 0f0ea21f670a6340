"""The command line as a whole: its version, its errors in one line, its exit codes."""

from __future__ import annotations

import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from kinodex.cli import sketch
from kinodex.cli.main import COMMANDS
from tests.support.command import Kinodex


def test_version(kinodex: Kinodex) -> None:
    ran = kinodex("--version")
    assert (ran.code, ran.out) == (0, f"kinodex {version('kinodex')}\n")


def test_help_names_every_command(kinodex: Kinodex) -> None:
    ran = kinodex("--help")
    lines = [line.split()[1:2] for line in ran.out.splitlines()]
    assert ran.code == 0
    assert len(COMMANDS) == 25
    assert [name for (name,) in filter(None, lines) if name in COMMANDS] == list(COMMANDS)


def test_an_unknown_command_is_refused_with_the_names_near_it(kinodex: Kinodex) -> None:
    ran = kinodex("serch")
    assert ran.code == 2
    assert "No such command 'serch'. Did you mean 'search', 'serve', 'bench'?" in ran.err


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_one_line(kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sketch, "demo", interrupted)
    ran = kinodex("demo", tmp_path)
    assert ran.code == 130
    assert ran.err.strip() == "interrupted: completed work is kept; run the command again to continue"
