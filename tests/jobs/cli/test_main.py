"""The command line as a whole: its version, its errors in one line, its exit codes."""

from __future__ import annotations

import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from jobs.cli.main import app
from tests.support.command import Kinodex


def test_version(kinodex: Kinodex) -> None:
    ran = kinodex("--version")
    assert (ran.code, ran.out) == (0, f"kinodex {version('kinodex')}\n")


def test_help_names_every_command(kinodex: Kinodex) -> None:
    ran = kinodex("--help")
    names = [each.name for each in app.registered_commands] + [each.name for each in app.registered_groups]
    assert ran.code == 0
    assert len(names) == 20
    assert all(f" {name} " in ran.out for name in names)


def test_ctrl_c_is_one_line(kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    (command,) = [each for each in app.registered_commands if each.name == "demo"]
    monkeypatch.setattr(command, "callback", interrupted)
    ran = kinodex("demo", tmp_path)
    assert ran.code == 130
    assert ran.err.strip() == "interrupted: completed work is kept; run the command again to continue"
