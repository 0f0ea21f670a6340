"""A variant: an agent with its algorithm, its parameters, its needs, and its words for the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.protocol.request import Request
from kinodex.agent.session import Session
from kinodex.agent.variants.words import Step
from kinodex.index.kinds import KindName

THOUGHT = "Nothing that is known so far shows it clearly; a closer look at the next part may."
"""A thought of usual length, for `Variant.assumes`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An agent under its name. `run` takes parameters of the class that `parameters` makes.

    `parameters` returns the defaults for a longest video of this many seconds: a frozen dataclass with, at least,
    `rounds`, the paper's own limit of rounds or steps. `uses` names the kinds that the agent reads besides
    frames; there may be none. `ablations` are settings of its parameters, by the name of the part
    that they switch off.
    """

    name: str
    line: str
    run: Callable[[Session, Any], Awaitable[Answer]]
    parameters: Callable[[float], Any]
    roles: tuple[str, ...]
    uses: tuple[KindName, ...] = ()
    ablations: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    needs_language: bool = False
    """True if it reasons in words, so that `similarity` cannot be its policy."""
    needs_pictures: bool = False
    """True if it cannot work with words about a video alone."""
    prefers_pictures: bool = False
    """True if it looks at pictures where it can, and reads words of the same moments where it cannot."""
    needs_vectors: bool = False
    """True if it cannot work without the vectors of frames, in a library without a space."""
    chooses: bool = False
    """True if it always names one of a question's options, as its paper's evaluation does."""
    sees_video: bool = True
    """False for an agent that never receives anything of the video."""
    plain: str = ""
    """One or two sentences for somebody who reads no papers, beside `line` on the page."""
    words: Mapping[str, Callable[[Step], str]] = dataclasses.field(default_factory=dict)
    """Its steps (`Acted`) in the sentences of the page, by their action: "skimmed 0:10 to 2:00 for “a dog”". Each is a
    clause without a subject; "" for a step that another event tells about. A step without words has its own name."""
    assumes: Callable[[Request[Any]], Mapping[str, Any] | str | None] = lambda request: None
    """What a dry run takes for the reply to one of its requests, so that the agent goes on as long as it may. None: the
    request's own example."""

    @property
    def asks_for_sight(self) -> bool:
        """True if its models are first asked whether they see, since it shows them pictures or reads words instead."""
        return self.needs_pictures or self.prefers_pictures


def check_at_least(parameters: Any, **least: float) -> None:
    """Raise `BadSettings` for the first of these parameters that is below its minimum."""
    for name, low in least.items():
        if getattr(parameters, name) < low:
            raise BadSettings(f"got {name}={getattr(parameters, name)}; it is at least {low}")
