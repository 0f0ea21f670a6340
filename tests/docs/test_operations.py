"""docs/operations.md against the code: the variables that it reads and the exit codes that it gives are all there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinodex.agent.models.roles import Role
from kinodex.doctor.keys import KEYS
from kinodex.jobs import errors
from kinodex.jobs.ingest.config import PREFIX


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "operations.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> str:
    """The first cells of the rows of the tables under a heading."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return " ".join(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE))


def test_variables(page: str, root: Path) -> None:
    folders = ("pipeline", "index", "agent", "jobs")
    code = "".join(path.read_text(encoding="utf-8") for folder in folders for path in (root / folder).rglob("*.py"))
    read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', code))
    assert {"KINODEX_CACHE", "RAY_ADDRESS"} <= read
    named = rows(page, "Environment variables")
    wanted = {*read, *KEYS, f"{PREFIX}...", Role.model_fields["key_env"].default} - {
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        "KMP_DUPLICATE_LIB_OK",
    }
    assert [name for name in sorted(wanted) if f"`{name}`" not in named] == []


def test_exit_codes(page: str) -> None:
    codes = {
        errors.OK, errors.CRASHED, errors.BAD_INPUT, errors.SOME_FAILED, errors.LIBRARY_UNUSABLE,
        errors.MODEL_UNUSABLE, errors.REPLIES_UNUSABLE, errors.INTERRUPTED, errors.PIPE_CLOSED,
    }  # fmt: skip
    assert [int(code) for code in re.findall(r"\d+", rows(page, "Exit codes"))] == sorted(codes)
