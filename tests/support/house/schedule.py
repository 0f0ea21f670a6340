"""Division of the files of tests between processes: each whole, all that share a cluster of Ray to the same one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def needs_cluster(file: Path) -> bool:
    """Tell whether tests of a file take the fixture `ray_cluster`."""
    return "ray_cluster: RayCluster" in file.read_text(encoding="utf-8")


def cluster_together(config: Any, log: Any) -> Any:
    """Make a scheduler of xdist that gives a process whole files, and all files of the cluster to the same one.

    A cluster takes 5 s and more to start, and each process would start its own.
    """
    from xdist.scheduler import LoadFileScheduling

    def scope(self: Any, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "cluster" if needs_cluster(config.rootpath / file) else file

    return type("ClusterTogether", (LoadFileScheduling,), {"_split_scope": scope})(config, log)
