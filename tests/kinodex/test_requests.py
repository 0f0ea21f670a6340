"""Requests are declared once: a new field is in every face, and Python's signatures are those of the models."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kinodex
from kinodex.jobs.errors import UsageError
from kinodex.requests import VERBS, Ask, Find, Ground, Request, flags, made, outside

FACES = """
import asyncio, json
from typer.testing import CliRunner
from mcp import Client
from starlette.testclient import TestClient
from docs.requests_page import page
from kinodex.cli.main import app
from kinodex.requests import VERBS, schema_of
from tests.support.servers.mcp_client import server_of
from kinodex.index.library import Library
import sys

async def tools():
    async with Client(server_of(Library.open(sys.argv[1]))) as client:
        return {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}

print(json.dumps({
    "help": CliRunner().invoke(app, ["ask", "--help"], env={"COLUMNS": "200"}).output,
    "http": schema_of(VERBS["ask"])["properties"],
    "mcp": asyncio.run(tools())["ask"],
    "docs": page(),
}))
"""
ANCHOR = "    earlier: tuple[Earlier, ...] = ()\n"
MOOD = '    mood: Annotated[str, Flag("How to sound.", "--mood")] = "plain"\n'


@pytest.mark.slow
def test_a_field_that_is_added_to_a_request_is_in_every_face(library: Path, root: Path, tmp_path: Path) -> None:
    """No other file is touched: all others of the package are links to those of the checkout."""
    package = tmp_path / "kinodex"
    package.mkdir()
    for each in (root / "kinodex").iterdir():
        (package / each.name).symlink_to(each.resolve())
    declared = (root / "kinodex" / "requests.py").read_text()
    (package / "requests.py").unlink()
    (package / "requests.py").write_text(declared.replace(ANCHOR, MOOD + ANCHOR))
    for name in ("docs", "tests"):
        (tmp_path / name).symlink_to(root / name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", FACES, str(library)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    faces = json.loads(ran.stdout)
    assert "--mood" in faces["help"] and "How to sound." in faces["help"]
    assert faces["http"]["mood"]["description"] == faces["mcp"]["mood"]["description"] == "How to sound."
    assert "| `mood` | `--mood` | How to sound. Default: `plain`. |" in faces["docs"]


def test_the_page_of_requests_is_that_of_the_models(root: Path) -> None:
    from docs.requests_page import page

    assert (root / "docs" / "requests.md").read_text() == page(), "python -m docs.requests_page > docs/requests.md"


@pytest.mark.parametrize("verb", VERBS)
def test_the_methods_of_a_library_have_the_fields_of_the_models(verb: str) -> None:
    """Editors need signatures that are written out; None stands for a model's own budget, rules or settings."""
    taken = inspect.signature(getattr(kinodex.Library, verb)).parameters
    for name, field, _ in flags(VERBS[verb]):
        assert name in taken, f"{verb}({name}=)"
        usual = taken[name].default
        if usual is not inspect.Parameter.empty and usual is not None and name != "agent":
            assert usual == field.default, f"{verb}({name}=)"


@pytest.mark.parametrize(
    ("request_", "values", "says"),
    [
        (Find, {"k": 0}, "got k=0; it should be greater than or equal to 1"),
        (Find, {"k": "many"}, "got k='many'; it should be a valid integer"),
        (Find, {"kk": 1}, "got kk, which is not taken here; give some of videos, where, start_s"),
        (Find, {"start_s": "soon"}, "start_s: got the time 'soon'; give seconds"),
        (Find, {"query": "x" * 2001}, "query: got 2,001 characters; give at most 2,000"),
        (Ground, {}, "got no text; give one"),
        (Ask, {"question": "What?", "budget": {"frames": 0}}, "budget: got a budget of 0 frames; give a whole number"),
        (Ask, {"question": "What?", "budget": {"frame": 1}}, "got budget.frame, which is not taken here"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(request_: type[Request], values: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(request_, values)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_spellings_of_the_caller_are_used() -> None:
    with pytest.raises(UsageError, match=r"^got --in=3; it should be a valid string"):
        made(Find, {"in": 3}, spellings={"in": "--in"})
    assert outside("in_") == "in"
