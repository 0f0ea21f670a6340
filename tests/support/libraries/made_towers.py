"""Folders of towers whose files hold any bytes: for tests of where towers are kept, not of what they compute."""

from __future__ import annotations

from pathlib import Path

from kinodex.index.spaces.towers import SpaceTowers, TowerFacts, TowerKind, tower_facts, write_towers
from tests.support.libraries.random_library import fingerprint

FILES: dict[TowerKind, tuple[str, ...]] = {"text": ("text.bin", "tokenizer.json"), "image": ("image.bin",)}


def made_towers(folder: Path, *kinds: TowerKind, content: bytes = b"weights", **refusals: str) -> Path:
    """Write towers of these kinds of the space of `random_library` into a new folder, and return it."""
    folder.mkdir(parents=True)
    facts: dict[TowerKind, TowerFacts] = {}
    for kind in kinds:
        for name in FILES[kind]:
            (folder / name).write_bytes(content + name.encode())
        facts[kind] = tower_facts(folder, FILES[kind], {"of": kind}, 3, 0.99995)
    write_towers(folder, SpaceTowers(fingerprint(), facts.get("text"), facts.get("image"), refusals))
    return folder
