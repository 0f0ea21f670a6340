"""Names of models that the user gave on this machine: one that only a library names is neither opened nor fetched.

A library may come from anybody, and the name of a model in it may be a folder of that library, a path of this machine
or a model of somebody on the hub. A name counts as the user's once a command or a call gave it here, or while it stands
in `KINODEX_MODELS`. Models of open_clip's own list, and those that the documentation names, need no naming.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from kinodex.index.errors import ModelNotNamed

MODELS = "KINODEX_MODELS"
"""Names of models, with commas between them."""
OF_OPEN_CLIP = re.compile(r"\w[\w.-]*/\w[\w.-]*(?<!\.safetensors)")
"""An architecture and a tag, which open_clip looks up in its own list."""
OF_TRANSFORMERS = re.compile("sentence-transformers/all-MiniLM-L6-v2|microsoft/xclip-base-patch32")
"""Models of sentences and of clips on the hub that the documentation names: weights, and no code."""


def check_named(name: str, uri: str, known: re.Pattern[str] = OF_OPEN_CLIP) -> None:
    """Raise ModelNotNamed for a model that the library at `uri` names, and neither the user nor `known` does."""
    if known.fullmatch(name) or is_named(name):
        return
    raise ModelNotNamed(
        f"{uri} names the model {name!r}, which was never named here; a model may come from anybody: if you trust this "
        f"one, name it too with {MODELS}={name}"
    )


def is_named(name: str) -> bool:
    """Return True of a model, or of the address of a server of models, that the user named on this machine."""
    return name in _in_environment() or _note_of(name).is_file()


def note_model(name: str) -> None:
    """Note that the user named a model, for later commands on libraries that hold its vectors."""
    if name in _in_environment() or (OF_OPEN_CLIP.fullmatch(name) and not Path(name).exists()):
        return
    note = _note_of(name)
    with suppress(OSError):  # where nothing can be written, a later command asks for the name again
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()  # its own name is a digest of the model's: an address may hold a password


def _in_environment() -> set[str]:
    return {name.strip() for name in os.environ.get(MODELS, "").split(",")}


def _note_of(name: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    state = Path(os.environ.get("KINODEX_STATE") or f"{home}/kinodex").expanduser()
    return state / "models" / hashlib.sha256(name.encode()).hexdigest()[:16]
