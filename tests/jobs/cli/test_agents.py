"""`kinodex agents`: all agents, and one with its parameters."""

from __future__ import annotations

import json

from tests.support.command import Kinodex, bad


def test_agents_are_listed_with_what_can_be_set(kinodex: Kinodex) -> None:
    listed = json.loads(kinodex("agents", "--json").out)
    assert [each["name"] for each in listed][:1] == ["eea"]
    assert all(each["line"] and each["parameters"]["rounds"] >= 1 for each in listed)
    for each in listed:
        shown = kinodex("agents", each["name"])
        assert shown.code == 0
        assert all(f"--set {name}=" in shown.out for name in each["parameters"])
        assert each["meanings"].keys() == each["parameters"].keys(), "every parameter is explained"
        for settings in each["ablations"].values():
            assert set(settings) <= set(each["parameters"])
    table = kinodex("agents").out
    assert all(each["name"] in table for each in listed)
    bad(kinodex, "agents", "eeaa", code=2, says="did you mean 'eea'")
