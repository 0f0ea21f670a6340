"""The command line as a user has it: arguments in, exit code and what was printed out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kinodex.cli.main import main as main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line that a refused command prints."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err + self.out
        return lines[0]


Kinodex = Callable[..., Ran]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kinodex:
    """A function that runs `kinodex` with some arguments in this process."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["kinodex", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        code: object = 0
        try:
            main()
        except SystemExit as done:
            code = done.code
        printed = capsys.readouterr()
        return Ran(int(str(code or 0)), printed.out, printed.err)

    return run


def bad(kinodex: Kinodex, *arguments: object, code: int, says: str) -> None:
    """Run a command that is refused with this exit code, in one line that says so."""
    ran = kinodex(*arguments)
    assert ran.code == code, ran
    assert says in ran.error_line, ran.err


def json_of(kinodex: Kinodex, *arguments: object, code: int = 0) -> Any:
    """Run a command with `--json`; returns what it prints."""
    ran = kinodex(*arguments, "--json")
    assert ran.code == code, ran
    return json.loads(ran.out)
