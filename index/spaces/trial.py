"""The trial of an exported image tower against torch on one machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.index.spaces.arithmetic import processor_facts
from kinodex.index.spaces.tower_cache import cached_place

TRIAL_JSON = "trial.json"


@dataclass(frozen=True, slots=True)
class Trial:
    """ONNX Runtime against torch on one machine: which embeds its pictures, and why."""

    taken: bool
    """True if the exported tower does."""
    why: str
    cpu: str
    cpu_s_a_picture: Mapping[str, float]
    """By arithmetic, on one core."""


def read_trial(digest: str) -> Trial | None:
    """Read the trial of a space's image tower on this machine; None if there was none."""
    try:
        trial = Trial(**json.loads((cached_place(digest, "image") / TRIAL_JSON).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return trial if trial.cpu == processor_facts()[0] else None


def write_json(path: Path, value: Any) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
