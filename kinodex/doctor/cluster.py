"""Check of Ray for `kinodex doctor`: the package, and the resources of a cluster if one is named."""

from __future__ import annotations

import importlib.util
import os
from functools import partial
from importlib.metadata import version
from typing import Any

from kinodex.doctor.check_result import CheckResult
from kinodex.jobs.errors import UsageError

of_ray = partial(CheckResult, "tasks", "cluster")


def check_ray(address: str | None) -> list[CheckResult]:
    """Check the cluster at `address`, or at RAY_ADDRESS; "local" starts one here. Without either nothing is started."""
    if importlib.util.find_spec("ray") is None:
        return [of_ray("missing", "ray is not installed", "pip install 'kinodex[ray]'")]
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:
        message = f"ray {version('ray')} is installed; no cluster was named"
        return [of_ray("missing", message, "kinodex doctor --ray local")]
    import ray

    from kinodex.jobs.ray_cluster import connected

    api: Any = ray
    try:
        with connected(address):
            has = api.cluster_resources()
            nodes = len([node for node in api.nodes() if node["Alive"]])
    except UsageError as error:
        return [of_ray("broken", str(error), "ray start --head")]
    offers = f"{has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs, {has.get('memory', 0) / 1e9:.1f} GB"
    return [of_ray("ok", f"ray {version('ray')} at {address}: nodes: {nodes}, {offers}")]
