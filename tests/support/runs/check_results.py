"""Findings of `kinodex doctor` looked up by name, and a server and a cache of models for it to check."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kinodex.doctor.check_result import CheckResult
from tests.support.servers.chat_server import Behaviour


def by_name(found: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {each.name: each for each in found}


def states(found: Iterable[CheckResult]) -> dict[str, str]:
    return {each.name: each.state for each in found}


def able(body: dict) -> Behaviour | dict | str:
    """Behave like a server that does all that it is asked for."""
    if "tools" in body:
        return Behaviour(calls=(("name_colour", '{"colour": "blue"}'),))
    if "response_format" in body:
        return {"colour": "blue"}
    pictures = json.dumps(body).count('"image_url": {')
    return "ready" if not pictures else "It is blue." if pictures == 1 else "Red, green, yellow, blue."


def cached_model(cache: Path, name: str, files: dict[str, str]) -> None:
    """Lay a model down as the hub's client keeps it."""
    folder = cache / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / "0123456789abcdef"
    for path in (folder / "blobs", folder / "refs", snapshot):
        path.mkdir(parents=True)
    (folder / "refs" / "main").write_text(snapshot.name)
    for number, (file, text) in enumerate(files.items()):
        (folder / "blobs" / str(number)).write_text(text)
        (snapshot / file).symlink_to(folder / "blobs" / str(number))
