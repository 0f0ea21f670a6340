"""The catalogue of agents by name: of five papers, of two that they are compared with, controls, and plugins."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kinodex.agent.errors import NeedsLanguage, NeedsPictures, UnknownAgent
from kinodex.agent.plugins import FORMS, SUFFIX, plugin_variants, split_spec
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.blind import BLIND
from kinodex.agent.variants.baselines.chance import CHANCE
from kinodex.agent.variants.baselines.similarity import SIMILARITY
from kinodex.agent.variants.baselines.uniform import UNIFORM
from kinodex.agent.variants.eea.agent import EEA
from kinodex.agent.variants.kino.agent import KINO
from kinodex.agent.variants.longvideoagent.agent import LONGVIDEOAGENT
from kinodex.agent.variants.vca.agent import VCA
from kinodex.agent.variants.videoagent.agent import VIDEOAGENT
from kinodex.agent.variants.videoagent2.agent import VIDEOAGENT2
from kinodex.agent.variants.videoseek.agent import VIDEOSEEK
from kinodex.agent.variants.videotree.agent import VIDEOTREE
from kinodex.index.errors import NoVectors

VARIANTS: tuple[Variant, ...] = (
    *(EEA, KINO, VCA, LONGVIDEOAGENT, VIDEOSEEK, VIDEOAGENT2),
    *(VIDEOAGENT, VIDEOTREE),
    *(UNIFORM, SIMILARITY, BLIND, CHANCE),
)
OWN = f"give one of your own as {FORMS}"


def find_variant(agent: str | Variant, source: str | None = None) -> Variant:
    """Find the agent of a name, or of a plugin's spec (`FORMS`), whose file's text may be given as `source`.

    Raises `UnknownAgent` if there is none, and any error of a plugin's code.
    """
    if isinstance(agent, Variant):
        return _distinct(agent, agent.name)
    if not isinstance(agent, str):
        raise UnknownAgent(f"got {agent!r:.60} for an agent; give a name of `kinodex agents`, FILE.py or a Variant")
    return _distinct(_plugin(agent, source), agent) if is_plugin(agent) else variant_named(agent, advice=OWN)


def variant_named(name: str, advice: str = "choose one of these") -> Variant:
    """Find an agent of this project by its name, never a plugin; raises `UnknownAgent` with the nearest name.

    `advice` ends its message: what else can be named, where a file of one's own can.
    """
    found = next((each for each in VARIANTS if each.name == name), None)
    if found is None:
        names = [each.name for each in VARIANTS]
        near = difflib.get_close_matches(name, names, n=1)
        offer = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownAgent(f"there is no agent {name!r}; {offer}the agents are {', '.join(names)}; {advice}")
    return found


def is_plugin(spec: str) -> bool:
    """Return True if a spec names a file or a module, not an agent of this project."""
    return spec.endswith(SUFFIX) or ":" in spec


def check_fit(chosen: Variant, *, has_language: bool, unpictured: Sequence[str], without_vectors: str = "") -> None:
    """Refuse an agent at once that would fail later, after an hour of film was captioned.

    `has_language`: its policy is not `similarity`. `unpictured` are titles of videos without frames.
    `without_vectors` is the place of a library whose frames have none.
    """
    if chosen.needs_vectors and without_vectors:
        raise NoVectors.of(without_vectors, f"the agent {chosen.name}")
    if without_vectors and not has_language and chosen.sees_video and not chosen.uses:
        raise NoVectors.of(without_vectors, f"similarity in the agent {chosen.name}, which reads no words,")
    if chosen.needs_language and not has_language:
        raise NeedsLanguage(
            f"similarity has no language, and the agent {chosen.name} reasons in words: it needs a language "
            "model; give --model and --base-url, or choose another agent"
        )
    if chosen.needs_pictures and unpictured:
        readers = [each.name for each in VARIANTS if each.sees_video and not each.needs_pictures]
        more = f" and of {len(unpictured) - 1} more" if len(unpictured) > 1 else ""
        raise NeedsPictures(
            f"the agent {chosen.name} looks at frames, and the library holds only words of {unpictured[0]!r}{more}; "
            f"ingest the video, or choose an agent that reads: {', '.join(readers)}"
        )


def _plugin(spec: str, source: str | None) -> Variant:
    _, name = split_spec(spec)
    found = plugin_variants(spec, source)
    if not name:
        found = {key: each for key, each in found.items() if all(each is not other for other in VARIANTS)}
        if len(found) == 1:
            return next(iter(found.values()))
    if name in found:
        return found[name]
    there = f"which defines {', '.join(found)}" if found else "which defines no Variant at its top level"
    raise UnknownAgent(f"got {spec} for an agent, {there}; write {FORMS} so that it means one")


def _distinct(plugin: Variant, spec: str) -> Variant:
    """Raise `UnknownAgent` for a plugin that traces and reports could not distinguish from an agent of this project."""
    if any(each.name == plugin.name and each is not plugin for each in VARIANTS):
        raise UnknownAgent(
            f"{spec} defines an agent {plugin.name!r}, which is one of kinodex's own; give it another name"
        )
    return plugin
