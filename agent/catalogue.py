"""The agents by name: of five papers, of two that they are measured against, and controls."""

from __future__ import annotations

import difflib

from agent.errors import UnknownAgent
from agent.variant import Variant
from agent.variants.blind import BLIND
from agent.variants.chance import CHANCE
from agent.variants.eea import EEA
from agent.variants.longvideoagent import LONGVIDEOAGENT
from agent.variants.uniform import UNIFORM
from agent.variants.vca import VCA
from agent.variants.videoagent import VIDEOAGENT
from agent.variants.videoagent2 import VIDEOAGENT2
from agent.variants.videoseek import VIDEOSEEK
from agent.variants.videotree import VIDEOTREE

VARIANTS: tuple[Variant, ...] = (
    EEA,
    VCA,
    LONGVIDEOAGENT,
    VIDEOSEEK,
    VIDEOAGENT2,
    VIDEOAGENT,
    VIDEOTREE,
    UNIFORM,
    BLIND,
    CHANCE,
)


def variant(name: str) -> Variant:
    """The agent of a name; raises `UnknownAgent` with the nearest one."""
    found = next((each for each in VARIANTS if each.name == name), None)
    if found is None:
        names = [each.name for each in VARIANTS]
        near = difflib.get_close_matches(name, names, n=1)
        offer = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownAgent(f"there is no agent {name!r}; {offer}The agents are {', '.join(names)}")
    return found
