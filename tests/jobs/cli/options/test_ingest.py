"""Options of `kinodex ingest`: an address after --ray, and one option for each setting with a `Flag`."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from kinodex.cli.options import spread_ray, with_setting_options
from kinodex.jobs.ingest.config import command_options


@pytest.mark.parametrize(
    ("given", "spread"),
    [
        (["films", "--ray", "--fps", "2"], ["films", "--ray", "--fps", "2"]),
        (["--ray", "films"], ["--ray", "films"]),
        (["--ray", "films/a.mp4"], ["--ray", "films/a.mp4"]),
        (["--ray", "auto", "films"], ["--ray-address", "auto", "films"]),
        (["--ray", "ray://head:10001"], ["--ray-address", "ray://head:10001"]),
        (["--ray", "10.0.0.1:6379"], ["--ray-address", "10.0.0.1:6379"]),
        (["--ray=head"], ["--ray-address", "head"]),
        (["films", "auto"], ["films", "auto"]),
    ],
)
def test_an_address_may_follow_ray(given: list[str], spread: list[str]) -> None:
    assert spread_ray(given) == spread


def test_every_setting_with_a_flag_is_an_option_in_the_place_of_settings() -> None:
    received: dict[str, Any] = {}

    @with_setting_options
    def command(first: Annotated[str | None, typer.Option()] = None, *, last: bool = False, **settings: Any) -> None:
        received.update(settings, first=first, last=last)

    app = typer.Typer(add_completion=False)
    app.command()(command)
    names = [each.name for each in get_command(app).params]
    assert names == ["first", *command_options(), "last"]
    arguments = ["--jpeg-side", "64", "--ray", "--decoder", "pyaf", "--last"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    given = {
        "jpeg_side_px": 64,
        "ray": True,
        "decoder": "pyaf",
        "last": True,
    }  # a wrong choice is `resolve`'s to refuse
    assert {name: value for name, value in received.items() if value is not None} == given
