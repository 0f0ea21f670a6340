"""Specs of agents parsed into systems, with ablations and controls."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.agent.errors import UnknownAgent
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.systems import parse_systems
from tests.support.runs.eval_runs import OWN_AGENT


def test_a_spec_is_an_agent_and_its_settings() -> None:
    (system,) = parse_systems(["eea:anchor-frames=2,pooling=sum"], controls=False)
    assert (system.name, system.agent) == ("eea:anchor-frames=2,pooling=sum", "eea")
    assert system.settings == {"anchor_frames": "2", "pooling": "sum"}
    assert (system.source, system.code, system.is_control) == (None, None, False)


def test_controls_are_added_and_uniform_follows_the_first_agent() -> None:
    names = [each.name for each in parse_systems(["vca", "eea"])]
    assert names == ["vca", "eea", "uniform, as many frames as vca", "blind", "random"]
    assert [each.name for each in parse_systems(["vca"], has_language=False)][1:] == [
        "uniform, as many frames as vca",
        "random",
    ]
    assert [each.name for each in parse_systems(["blind", "uniform"])] == ["blind", "uniform", "random"]


def test_ablations_follow_their_agent() -> None:
    first, *ablations = parse_systems(["eea:pooling=sum"], ablations=True, controls=False)
    assert ablations
    assert all(each.name.startswith(f"{first.name}, ") and each.settings["pooling"] == "sum" for each in ablations)


def test_the_file_of_ones_own_agent_is_kept_with_its_code(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN_AGENT)
    (system,) = parse_systems([f"{path}:frames=3"], controls=False)
    assert (system.name, system.source, system.settings) == ("mine:frames=3", OWN_AGENT, {"frames": "3"})
    path.write_text(OWN_AGENT + "\n")
    (changed,) = parse_systems([str(path)], controls=False)
    assert None not in (system.code, changed.code)
    assert system.code != changed.code
    assert system.find_variant().name == "mine"


@pytest.mark.parametrize(
    ("specs", "error", "says"),
    [
        (["eea", "eea"], UsageError, "got the agent 'eea' twice"),
        (["eea:frames"], UsageError, "got --agent eea:frames; write it as"),
        (["eea:=3"], UsageError, "write it as AGENT or AGENT:NAME=VALUE"),
        (["nobody"], UnknownAgent, "nobody"),
    ],
)
def test_specs_that_make_no_sense_are_refused(specs: list[str], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse_systems(specs)
