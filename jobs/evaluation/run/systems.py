"""The systems that a run compares, from their specs: agents with some parameters set, ablations, and controls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.variants.base import Variant
from agent.variants.plugin import plugin_source
from agent.variants.registry import VARIANTS, find_variant, is_plugin
from jobs.errors import UsageError

CONTROLS = ("uniform", "blind", "random")


@dataclass(frozen=True, slots=True)
class System:
    """An agent with some of its parameters set, under the name of its row.

    `frames_of` names the system whose mean number of frames this one gets as its parameter `frames`; it starts only
    when that one is done. `source` is the text of an agent's file if the agent is not kinodex's own: the processes that
    solve samples run this text, and the plan of the run keeps it.
    """

    name: str
    agent: str
    settings: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    frames_of: str | None = None
    source: str | None = None

    def find_variant(self) -> Variant:
        """Look the agent up; raise as `agent.variants.registry.find_variant` does."""
        return find_variant(self.agent, self.source)

    @property
    def code(self) -> str | None:
        """Short hash of the agent's own file, which tells its versions apart."""
        return None if self.source is None else hashlib.sha256(self.source.encode()).hexdigest()[:8]

    @property
    def is_control(self) -> bool:
        """True for uniform, blind and random."""
        return self.agent in CONTROLS


def parse_systems(
    specs: Sequence[str], *, ablations: bool = False, controls: bool = True, has_language: bool = True
) -> tuple[System, ...]:
    """Parse specs, "AGENT" or "AGENT:NAME=VALUE,NAME=VALUE", into systems, each followed by its ablations on request.

    AGENT is a name or what `agent.variants.plugin` takes; such an agent goes by the name that its file gives it.

    `controls` adds those of `CONTROLS` that are not named: uniform gets as many frames as the first agent needed, and
    blind is left out if no model `has_language`. Raises `UsageError` for a malformed or repeated spec and
    `UnknownAgent` for an unknown agent.
    """
    systems: list[System] = []
    for spec in specs:
        system = _parse_spec(spec)
        systems.append(system)
        if ablations:
            off = system.find_variant().ablations
            systems += [
                replace(system, name=f"{system.name}, {part}", settings={**system.settings, **off[part]})
                for part in off
            ]
    names = [each.name for each in systems]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"got the agent {repeated!r} twice; give each once, or with other settings")
    return tuple(systems + (_missing_controls(systems, has_language) if controls else []))


def _parse_spec(spec: str) -> System:
    agent, rest = _split(spec)
    settings = {}
    for each in rest.split(",") if rest else []:
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"got --agent {spec}; write it as AGENT or AGENT:NAME=VALUE,NAME=VALUE")
        settings[name.strip().replace("-", "_")] = value.strip()
    source = plugin_source(agent) if is_plugin(agent) else None
    name = find_variant(agent, source).name
    return System(f"{name}:{rest}" if rest else name, name if source is None else agent, settings, source=source)


def _split(spec: str) -> tuple[str, str]:
    """Split a spec into agent and settings; FILE.py:NAME and package.module:NAME have a colon of their own."""
    agent, _, rest = spec.partition(":")
    if any(each.name == agent for each in VARIANTS):
        return agent, rest
    agent, _, rest = spec.rpartition(":")
    return (agent, rest) if "=" in rest and agent else (spec, "")


def _missing_controls(systems: Sequence[System], has_language: bool) -> list[System]:
    named = {each.agent for each in systems}
    first = next((each for each in systems if not each.is_control), None)
    controls = []
    for name in CONTROLS:
        if name in named or (name == "blind" and not has_language):
            continue
        if name == "uniform" and first is not None:
            controls.append(System(f"uniform, as many frames as {first.name}", name, frames_of=first.name))
        else:
            controls.append(System(name, name))
    return controls
