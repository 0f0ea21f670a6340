"""Options that several commands share: rules of an answer, settings of an ingest, money, models that are announced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.errors import BadSettings
from kinodex.cli.from_models import with_setting_options
from kinodex.cli.main import spread_ray
from kinodex.cli.model_options import announce, check_cost
from kinodex.index.flags import flag_of
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.models import ModelChoice
from tests.support.command import Kinodex
from tests.support.servers.chat_server import ChatServer

PRICED = ModelChoice("m", "http://127.0.0.1:9/v1", None, 1.0, 2.0)
FREE = ModelChoice("m", "http://127.0.0.1:9/v1", None)


def test_an_amount_of_money_is_above_0_and_needs_a_price() -> None:
    check_cost(PRICED, 0.5, 10.0)
    check_cost(FREE, None, None)
    for choice, max_cost, stop_at_cost, says in (
        (PRICED, 0.0, None, "got --max-cost 0; give an amount of more than 0"),
        (PRICED, 1.0, float("inf"), "got --stop-at-cost inf; give an amount of more than 0"),
        (FREE, None, 1.0, "got --stop-at-cost without prices: no model of this run has one"),
    ):
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


def test_two_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadSettings, match="contradict each other; give one of them"):
        AnswerRules(force_choice=True, early_insufficient=True)


def test_an_address_may_follow_ray() -> None:
    for given, spread in {
        "films --ray --fps 2": "films --ray --fps 2",
        "--ray films": "--ray films",
        "--ray films/a.mp4": "--ray films/a.mp4",
        "--ray auto films": "--ray-address auto films",
        "--ray ray://head:10001": "--ray-address ray://head:10001",
        "--ray 10.0.0.1:6379": "--ray-address 10.0.0.1:6379",
        "--ray=head": "--ray-address head",
        "films auto": "films auto",
    }.items():
        assert spread_ray(given.split()) == spread.split()


def test_every_setting_with_a_flag_is_an_option_in_the_place_of_settings() -> None:
    received: dict[str, Any] = {}

    @with_setting_options
    def command(first: Annotated[str | None, typer.Option()] = None, *, last: bool = False, **settings: Any) -> None:
        received.update(settings, first=first, last=last)

    app = typer.Typer(add_completion=False)
    app.command()(command)
    names = [each.name for each in get_command(app).params]
    settings = [name for name, field in IngestConfig.model_fields.items() if flag_of(field.metadata)]
    assert names == ["first", *settings, "last"]
    arguments = ["--jpeg-side", "64", "--ray", "--decoder", "pyaf", "--last"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    given = {
        "jpeg_side_px": 64,
        "ray": True,
        "decoder": "pyaf",
        "last": True,
    }  # a wrong choice is `resolve`'s to refuse
    assert {name: value for name, value in received.items() if value is not None} == given
