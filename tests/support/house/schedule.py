"""Division of the files of tests between processes: each whole, and those that share what is slow to start together."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

SHARED = {
    "cluster": re.compile(r"ray_cluster: RayCluster"),
    "torch": re.compile(
        r"""^import torch$|late\((import_open_clip|"torch|"transformers)"""
        r"""|tests\.support\.models\.(tiny|stage|sentence|training)_model""",
        re.MULTILINE,
    ),
}
"""What files share, by what stands in them. Each process would start a cluster of Ray, or import torch and the like;
both take 5 s and more.
"""


@cache
def shares(file: Path) -> str | None:
    """Return what a file of tests shares with others, the cluster before torch."""
    text = file.read_text(encoding="utf-8")
    return next((name for name, words in SHARED.items() if words.search(text)), None)


def sharing_together(config: Any, log: Any) -> Any:
    """Make a scheduler of xdist that gives a process whole files, and all those that share something to the same."""
    from xdist.scheduler import LoadFileScheduling

    def scope(self: Any, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return shares(config.rootpath / file) or file

    return type("SharingTogether", (LoadFileScheduling,), {"_split_scope": scope})(config, log)
