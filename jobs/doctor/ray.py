"""Ray: the package, and the resources of a cluster if one is named."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import version
from typing import Any

from jobs.doctor import CheckResult
from jobs.errors import UsageError

SECTION = "Ray"
NAME = "cluster"


def check_ray(address: str | None) -> list[CheckResult]:
    """Check the cluster at `address`, or at RAY_ADDRESS; "local" starts one here. Without either nothing is started."""
    if importlib.util.find_spec("ray") is None:
        todo = "pip install 'kinodex[ray]'; --local needs none"
        return [CheckResult(SECTION, NAME, "missing", "ray is not installed", todo)]
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:
        message = f"ray {version('ray')} is installed; no cluster was named"
        return [CheckResult(SECTION, NAME, "missing", message, "--ray local tries one here, --ray HOST:PORT another")]
    return [_check_cluster(address)]


def _check_cluster(address: str) -> CheckResult:
    import ray

    from jobs.ray_cluster import connected

    api: Any = ray
    try:
        with connected(address):
            has = api.cluster_resources()
            nodes = len([node for node in api.nodes() if node["Alive"]])
    except UsageError as error:
        return CheckResult(SECTION, NAME, "broken", str(error), "start it, or name another")
    offers = f"{has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs, {has.get('memory', 0) / 1e9:.1f} GB"
    return CheckResult(SECTION, NAME, "ok", f"ray {version('ray')} at {address}: nodes: {nodes}, {offers}")
