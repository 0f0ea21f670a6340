"""Docstrings under the fields of parameters, and the values that a Literal allows."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Literal

from kinodex.agent.variants.base import describe_parameters, list_choices


@dataclass(frozen=True)
class Common:
    """Parameters of two agents."""

    frames: int = 4
    """Frames of a round,
    over two lines."""
    rounds: int = 1


@dataclass(frozen=True)
class Own(Common):
    reward: Literal["model", "none"] = "model"
    """Who scores."""
    rounds: int = 2
    """Rounds at most."""


def test_docstrings_stand_under_fields_and_are_inherited():
    assert describe_parameters(Own) == {
        "frames": "Frames of a round, over two lines.",
        "reward": "Who scores.",
        "rounds": "Rounds at most.",
    }
    assert describe_parameters(Common) == {"frames": "Frames of a round, over two lines."}


def test_a_class_without_source_has_no_descriptions():
    assert describe_parameters(make_dataclass("Made", [("frames", int, 3)])) == {}


def test_choices_are_those_of_literals():
    assert list_choices(Own) == {"reward": ("model", "none")}
