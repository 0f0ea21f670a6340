"""Contenders of a run: agents with some of their parameters set, and the controls beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kinodex.agent.catalogue import VARIANTS, find_variant, is_plugin
from kinodex.agent.plugins import plugin_source
from kinodex.agent.variants.base import Variant
from kinodex.jobs.errors import UsageError

CONTROLS = ("uniform", "similarity", "blind", "random")
LIKE_FIRST = ("uniform", "similarity")
"""Controls that see as many frames as the first agent needed."""


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent with some of its parameters set, under the name of its row.

    `frames_of` names the contender whose mean number of frames this one gets as its parameter `frames`, once that is
    done. `source` is the text of an agent's file that is not kinodex's own: workers run it, and the plan keeps it.
    """

    name: str
    agent: str
    settings: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    frames_of: str | None = None
    source: str | None = None

    def find_variant(self) -> Variant:
        """Look the agent up; raise as `kinodex.agent.catalogue.find_variant` does."""
        return find_variant(self.agent, self.source)

    @property
    def code(self) -> str | None:
        """Short hash of the agent's own file, which tells its versions apart."""
        return None if self.source is None else hashlib.sha256(self.source.encode()).hexdigest()[:8]

    @property
    def is_control(self) -> bool:
        """True for an agent that others are compared with."""
        return self.agent in CONTROLS


def parse_contenders(
    specs: Sequence[str], *, ablations: bool = False, controls: bool = True, has_language: bool = True
) -> tuple[Contender, ...]:
    """Parse specs, "AGENT" or "AGENT:NAME=VALUE,NAME=VALUE", into contenders, with their ablations on request.

    AGENT is a name or what `kinodex.agent.ask` takes. `controls` adds those of `CONTROLS` that are not named, those of
    `LIKE_FIRST` with as many frames as the first agent needed; blind and similarity are left out if no model
    `has_language`. Raises `UsageError` for a malformed or repeated spec and `UnknownAgent` for an unknown agent.
    """
    contenders: list[Contender] = []
    for spec in specs:
        contenders.append(contender := _parse_spec(spec))
        for part, settings in contender.find_variant().ablations.items() if ablations else ():
            name, settings = f"{contender.name}, {part}", {**contender.settings, **settings}
            contenders.append(replace(contender, name=name, settings=settings))
    names = [each.name for each in contenders]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"got the agent {repeated!r} twice; give each once, or with other settings")
    return tuple(contenders + (_missing_controls(contenders, has_language) if controls else []))


def _parse_spec(spec: str) -> Contender:
    agent, rest = _split(spec)
    settings = {}
    for each in rest.split(",") if rest else []:
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"got --agent {spec}; write it as AGENT or AGENT:NAME=VALUE,NAME=VALUE")
        settings[name.strip().replace("-", "_")] = value.strip()
    source = plugin_source(agent) if is_plugin(agent) else None
    name = find_variant(agent, source).name
    return Contender(f"{name}:{rest}" if rest else name, name if source is None else agent, settings, source=source)


def _split(spec: str) -> tuple[str, str]:
    """Split a spec into agent and settings; FILE.py:NAME and package.module:NAME have a colon of their own."""
    agent, _, rest = spec.partition(":")
    if any(each.name == agent for each in VARIANTS):
        return agent, rest
    agent, _, rest = spec.rpartition(":")
    return (agent, rest) if "=" in rest and agent else (spec, "")


def _missing_controls(contenders: Sequence[Contender], has_language: bool) -> list[Contender]:
    # without language `uniform` is `similarity`, and nothing can guess
    named = {each.agent for each in contenders} | (set() if has_language else {"blind", "similarity"})
    controls = {name: Contender(name, name) for name in CONTROLS}
    if first := next((each for each in contenders if not each.is_control), None):
        for name in LIKE_FIRST:
            controls[name] = Contender(f"{name}, as many frames as {first.name}", name, frames_of=first.name)
    return [each for name, each in controls.items() if name not in named]
