"""The space of the drawn world: a small CLIP, trained on pictures that kinodex drew, which knows nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.towers import TOWERS, read_whole

CHECKPOINT = Path(__file__).resolve().parent / "space"
"""The folder of its model in open_clip's form, for torch."""
FOLDER = CHECKPOINT / "towers"
"""The folder of its exported towers."""
DRAWN, DRAWN_BY_TORCH = f"towers:{FOLDER}", f"local-dir:{CHECKPOINT}"
"""Names of the space, as `--space` takes them: by its exported towers, and by its model."""


def drawn_fingerprint() -> Fingerprint:
    """Return its fingerprint without opening a tower."""
    return read_whole(FOLDER, "text", DRAWN)[0]


def put_towers(library: Path) -> None:
    """Give the library of an archive the towers of its space, which would be nine tenths of the file."""
    shutil.copytree(FOLDER, library / TOWERS / drawn_fingerprint().digest)
