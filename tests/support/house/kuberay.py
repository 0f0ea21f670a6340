"""KubeRay's fields, as far as our files use them, as models that refuse any other field.

KubeRay's own CRDs are in no package of PyPI, npm or Debian that was found, so the tests cannot have them. The models
here were held against the published CRD by hand, field by field (RayJob v1 with the RayCluster inside it, as
imroc/kubeschemas 364c2417 has it of KubeRay 1.3): every name, type, enum and required list agrees, but for the
autoscaler's `version`, which came with 1.4 (ray-project/kuberay 0057210e, docs/reference/api.md). Where the CRD takes
any string or number, they are narrower: `submissionMode` has the constants of the Go types (ray-operator/apis/ray/v1),
counts are not negative, and what our files always say is required. The pods inside are checked against the published
schema of Kubernetes, and Ray's autoscaler reads the cluster as it does on Kubernetes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

KUBERNETES = "1.34"


def _pod(template: dict[str, Any]) -> dict[str, Any]:
    """A pod template is a pod without a name; raises ValueError with what Kubernetes would not take."""
    import kubernetes_validate

    metadata = {"name": "pod"} | template.get("metadata", {})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    extra = set(template) - {"metadata", "spec"}
    if extra:
        raise ValueError(f"a pod template has no {', '.join(sorted(extra))}")
    try:
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        raise ValueError(f"{'.'.join(map(str, error.path))}: {error.message}") from error
    return template


Pod = Annotated[dict[str, Any], AfterValidator(_pod)]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Metadata(Strict):
    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$")
    labels: dict[str, str] = {}


class HeadGroup(Strict):
    ray_start_params: dict[str, str]
    template: Pod


class WorkerGroup(Strict):
    group_name: str
    replicas: Count
    min_replicas: Count
    max_replicas: Count
    ray_start_params: dict[str, str]
    template: Pod


class AutoscalerOptions(Strict):
    version: Literal["v1", "v2"]
    upscaling_mode: Literal["Default", "Aggressive", "Conservative"]
    idle_timeout_seconds: Count


class ClusterSpec(Strict):
    ray_version: str
    enable_in_tree_autoscaling: bool
    autoscaler_options: AutoscalerOptions
    head_group_spec: HeadGroup
    worker_group_specs: list[WorkerGroup]


class JobSpec(Strict):
    entrypoint: str
    submission_mode: Literal["K8sJobMode", "HTTPMode", "InteractiveMode"]
    backoff_limit: Count
    shutdown_after_job_finishes: bool
    ttl_seconds_after_finished: Count
    ray_cluster_spec: ClusterSpec


class RayCluster(Strict):
    api_version: Literal["ray.io/v1"]
    kind: Literal["RayCluster"]
    metadata: Metadata
    spec: ClusterSpec


class RayJob(Strict):
    api_version: Literal["ray.io/v1"]
    kind: Literal["RayJob"]
    metadata: Metadata
    spec: JobSpec
