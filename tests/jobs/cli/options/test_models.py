"""Amounts of money need a value above 0 and a model with a price; models behind endpoints are announced."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.cli.options import announce, check_cost
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from tests.support.command import Kinodex
from tests.support.servers.chat_server import ChatServer

PRICED = ModelChoice("m", "http://127.0.0.1:9/v1", None, 1.0, 2.0)
FREE = ModelChoice("m", "http://127.0.0.1:9/v1", None)


def test_amounts_that_are_accepted() -> None:
    check_cost(PRICED, 0.5, 10.0)
    check_cost(FREE, None, None)


@pytest.mark.parametrize(
    ("choice", "max_cost", "stop_at_cost", "says"),
    [
        (PRICED, 0.0, None, "got --max-cost 0; give an amount of more than 0"),
        (PRICED, 1.0, float("inf"), "got --stop-at-cost inf; give an amount of more than 0"),
        (FREE, None, 1.0, "got --stop-at-cost without prices: no model of this run has one"),
    ],
)
def test_amounts_that_are_refused(
    choice: ModelChoice, max_cost: float | None, stop_at_cost: float | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        check_cost(choice, max_cost, stop_at_cost)


ROLES = """
[default]
model = "large"
base_url = "https://me:secret@models.example.org/v1?key=hidden"
[vision]
model = "seer"
[judge]
model = "local:folder"
"""


def test_host_and_model_are_named_without_passwords_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    roles = tmp_path / "roles.toml"
    roles.write_text(ROLES)
    for choice in (ModelChoice(), ModelChoice("replay:trace"), ModelChoice("local:x"), FREE, ModelChoice("gpt")):
        announce(choice)
    announce(ModelChoice(roles_file=roles))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "asking m at http://127.0.0.1:9/v1",
        "asking gpt at https://api.openai.com/v1",
        "asking large at https://models.example.org/v1 (default); seer at https://models.example.org/v1 (vision)",
    ]


def test_the_announcement_is_printed_before_the_first_request_leaves(
    kinodex: Kinodex, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early: list[str] = []

    def reply(_: dict) -> str:
        early.append(capsys.readouterr().err)
        return "nonsense"

    with ChatServer(reply) as server:
        kinodex("ask", library, "Which?", "--agent", "blind", "--model", "tester", "--base-url", server.base_url)
    assert early[0] == f"asking tester at {server.base_url}\n"
