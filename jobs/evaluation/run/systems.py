"""Who takes part in a run: agents with some of their parameters set, their ablations, and the controls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.variants.base import Variant
from agent.variants.plugin import is_own, own_source
from agent.variants.registry import VARIANTS, variant
from jobs.errors import UsageError

CONTROLS = ("uniform", "blind", "random")


@dataclass(frozen=True, slots=True)
class System:
    """An agent with some of its parameters set, under the name of its row.

    `frames_of` names the contender whose mean number of frames this one gets as its parameter `frames`; it can only
    begin when that one is done. `source` is the text of an agent's file where it is none of kinodex's own: whoever asks
    runs this text, and a run's plan keeps it.
    """

    name: str
    agent: str
    settings: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    frames_of: str | None = None
    source: str | None = None

    def variant(self) -> Variant:
        """The agent itself; raises as `catalogue.variant` does."""
        return variant(self.agent, self.source)

    @property
    def code(self) -> str | None:
        """What tells one version of an agent's own file from another."""
        return None if self.source is None else hashlib.sha256(self.source.encode()).hexdigest()[:8]

    @property
    def is_control(self) -> bool:
        return self.agent in CONTROLS


def parse_systems(
    specs: Sequence[str], *, ablations: bool = False, controls: bool = True, language: bool = True
) -> tuple[System, ...]:
    """The contenders of some specs, "AGENT" or "AGENT:NAME=VALUE,NAME=VALUE", each followed by its ablations if wanted.

    AGENT is a name or what `agent.variants.plugin` takes; such an agent goes by the name that it gives itself.

    `controls` adds those of `CONTROLS` that are not named: uniform gets as many frames as the first agent needed, and
    blind is left out where no model has `language`. Raises `UsageError` for a malformed or repeated spec and
    `UnknownAgent` for an unknown agent.
    """
    entered: list[System] = []
    for spec in specs:
        named = _named(spec)
        entered.append(named)
        if ablations:
            off = named.variant().ablations
            entered += [
                replace(named, name=f"{named.name}, {what}", settings={**named.settings, **off[what]}) for what in off
            ]
    names = [each.name for each in entered]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"got the agent {repeated!r} twice; give each once, or with other settings")
    return tuple(entered + (_controls(entered, language) if controls else []))


def _named(spec: str) -> System:
    agent, rest = _split(spec)
    settings = {}
    for each in rest.split(",") if rest else []:
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"got --agent {spec}; write it as AGENT or AGENT:NAME=VALUE,NAME=VALUE")
        settings[name.strip().replace("-", "_")] = value.strip()
    source = own_source(agent) if is_own(agent) else None
    name = variant(agent, source).name
    return System(f"{name}:{rest}" if rest else name, name if source is None else agent, settings, source=source)


def _split(spec: str) -> tuple[str, str]:
    """An agent and its settings; FILE.py:NAME and package.module:NAME have a colon of their own."""
    agent, _, rest = spec.partition(":")
    if any(each.name == agent for each in VARIANTS):
        return agent, rest
    agent, _, rest = spec.rpartition(":")
    return (agent, rest) if "=" in rest and agent else (spec, "")


def _controls(entered: Sequence[System], language: bool) -> list[System]:
    named = {each.agent for each in entered}
    first = next((each for each in entered if not each.is_control), None)
    missing = [name for name in CONTROLS if name not in named and not (name == "blind" and not language)]
    controls = []
    for name in missing:
        if name == "uniform" and first is not None:
            controls.append(System(f"uniform, as many frames as {first.name}", name, frames_of=first.name))
        else:
            controls.append(System(name, name))
    return controls
