"""The files of infra/: each through the linter or schema of its kind, its commands through ours, its versions."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from kinodex.jobs.ingest.metrics import GPU_BUSY, METRICS, RAY_PREFIX
from tests.support.command import runner
from tests.support.house.kuberay import KUBERNETES, RayCluster, RayJob

LABELS = {metric.name: metric.label for metric in METRICS} | {GPU_BUSY: "gpu"}
OF_RAY = {"ray_node_gpus_utilization": "GpuIndex"}
"""What Ray tells of itself; the labels that every metric gets when it is asked for are known besides."""


@pytest.fixture(scope="module")
def infra(root: Path) -> Path:
    return root / "infra"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def checked(*command: object) -> None:
    """Run a checker; what it says is the failure."""
    program, *arguments = map(str, command)
    ran = subprocess.run([Path(sys.executable).with_name(program), *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_nobody_has_run_says_that_it_is_an_example(infra: Path) -> None:
    rows = re.findall(r"^\| (`.+`) \| .* \| (.+) \|$", (infra / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {infra / name: run for names, run in rows for name in re.findall(r"`([^`]+)`", names)}
    for path in (
        each for each in infra.rglob("*") if each.suffix in (".yaml", ".yml", ".sbatch") or each.name == "Dockerfile"
    ):
        (run,) = {run for place, run in named.items() if place in (path, *path.parents)}
        head = "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:2])
        assert ("# An example: nobody has run it." in head) == ("example" in run), path


def test_the_images_pass_hadolint(infra: Path) -> None:
    checked("hadolint", infra / "Dockerfile")


def test_the_images_hold_all_that_the_build_names_and_what_runs(root: Path, infra: Path) -> None:
    text = (infra / "Dockerfile").read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()}
    let_in = set(re.findall(r"^!(\S+)$", (infra / "Dockerfile.dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    assert copied == let_in
    assert all((root / name).exists() for name in copied)
    known = (root / "pyproject.toml").read_text(encoding="utf-8")
    packages = tomllib.loads(known)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {*packages, "constraints.txt", "pyproject.toml"} <= copied
    assert all(text.count(f"COPY {package} {package}\n") == 2 for package in packages)
    extras = re.findall(r"'\.\[([a-z0-9,]+)\]'", text)
    assert len(extras) == 2
    assert all(f"\n{extra} = [" in known for names in extras for extra in names.split(","))
    assert all({"hf", "ingest", "metrics", "ray", "s3"} <= set(names.split(",")) for names in extras)


def test_the_images_hold_what_those_who_start_them_call(infra: Path) -> None:
    """KubeRay's probes, and Ray's launcher, whose head reaches the others from within its container."""
    base, cpu, gpu = (infra / "Dockerfile").read_text(encoding="utf-8").split("\nFROM base AS ")
    assert {"wget", "openssh-client", "rsync"} <= set(base.split())
    assert "boto3" in cpu.split()
    assert loaded(infra / "ray-cluster.yaml")["docker"]["head_image"].endswith("-cpu")
    assert all("\nUSER 1000\nENV HOME=/home/kinodex\n" in image for image in (cpu, gpu)), "it looks up HOME there"


def test_compose_and_the_workflows_follow_their_schemas(root: Path, infra: Path) -> None:
    checked("check-jsonschema", "--builtin-schema", "vendor.compose-spec", infra / "compose.yaml")
    workflows = sorted((root / ".github" / "workflows").glob("*.yml"))
    checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for names in re.findall(r"\[([a-z,]+)\]\"", "".join(each.read_text("utf-8") for each in workflows)):
        assert {*names.split(",")} <= extras.keys()


def test_what_compose_mounts_and_what_prometheus_asks_is_there(infra: Path) -> None:
    services = loaded(infra / "compose.yaml")["services"]
    mounted = [mount.split(":")[0] for each in services.values() for mount in each.get("volumes", ())]
    assert all((infra / path).is_file() for path in mounted if path.startswith("."))
    dashboards = loaded(infra / "grafana" / "dashboards.yaml")["providers"][0]["options"]["path"]
    assert any(f":{dashboards}/kinodex.json" in mount for mount in services["grafana"]["volumes"])
    jobs = {job["job_name"]: job for job in loaded(infra / "prometheus.yml")["scrape_configs"]}
    (target,) = jobs["kinodex"]["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert f"--metrics-port {port}" in services[name]["command"]
    images = [each["image"] for each in services.values()]
    assert all(re.search(r":[^:]*\d", image) for image in images), "an image without a version"


@pytest.mark.parametrize(("name", "kind"), [("rayjob.yaml", RayJob), ("raycluster.yaml", RayCluster)])
def test_kuberay_takes_the_file(infra: Path, name: str, kind: type[RayJob] | type[RayCluster]) -> None:
    kind.model_validate(loaded(infra / "kuberay" / name))


def test_the_secret_is_one_and_the_pods_name_it(infra: Path) -> None:
    import kubernetes_validate

    secret = loaded(infra / "kuberay" / "secret.yaml")
    kubernetes_validate.validate(secret, KUBERNETES, strict=True)
    for text in ((infra / "kuberay" / name).read_text() for name in ("rayjob.yaml", "raycluster.yaml")):
        assert set(re.findall(r"secretRef:\s+name: (\S+)", text)) == {secret["metadata"]["name"]}


def test_job_and_cluster_are_the_same_cluster_and_the_autoscaler_reads_it(infra: Path) -> None:
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

    cluster = loaded(infra / "kuberay" / "raycluster.yaml")
    assert loaded(infra / "kuberay" / "rayjob.yaml")["spec"]["rayClusterSpec"] == cluster["spec"]
    cluster["metadata"]["namespace"] = "default"
    types = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    assert types["headgroup"]["resources"]["CPU"] == 0
    assert types["embed"]["resources"]["GPU"] == 1 <= types["embed"]["resources"]["CPU"], "embedders take one of each"
    assert types["embed"]["min_workers"] >= 1, "an ingest that begins without a GPU embeds on CPUs"
    # without both, pods that have idled stay: the operator sees to it only where the version is named
    assert cluster["spec"]["autoscalerOptions"]["version"] == "v2"
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    assert {group["template"]["spec"]["restartPolicy"] for group in groups} == {"Never"}
    room = sum(types[name]["resources"]["CPU"] * types[name]["max_workers"] for name in ("decode", "embed"))
    assert_fits(loaded(infra / "kuberay" / "rayjob.yaml")["spec"]["entrypoint"], room, types["embed"]["max_workers"])


def assert_fits(command: str, cpus: int, gpus: int) -> None:
    """Check that the cluster can grow to what a command asks for."""
    words = shlex.split(command)
    workers, embedders = (int(words[words.index(name) + 1]) for name in ("--workers", "--embedders"))
    assert embedders == gpus
    assert workers + embedders <= cpus


def test_rays_launcher_takes_its_file(infra: Path) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = prepare_config(loaded(infra / "ray-cluster.yaml"))
    validate_config(config)
    assert config["available_node_types"]["embed"]["min_workers"] >= 1
    with pytest.raises(Exception, match="max_wokers"):
        validate_config(config | {"max_wokers": 3})


def test_the_script_for_slurm_passes_shellcheck_and_says_what_it_wants(infra: Path) -> None:
    script = infra / "slurm" / "ingest.sbatch"
    checked("shellcheck", script)
    ran = subprocess.run(["bash", script, "s3://films/raw"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (
        2,
        "error: got 1 arguments; give SOURCES and LIBRARY, then options of kinodex ingest\n",
    )


def commands(infra: Path) -> Iterator[tuple[str, list[str]]]:
    """Each `kinodex ingest ...` in the files and their page, continued lines joined, without comment signs."""
    files = [path for path in sorted(infra.rglob("*")) if path.suffix in (".yaml", ".sbatch")]
    for path in (*files, infra.parent / "docs" / "clusters.md"):
        text = re.sub(r"\\\n[# ]*", " ", path.read_text(encoding="utf-8"))
        text = re.sub(r"\n +(?=--)", " ", text)
        for line in re.findall(r"kinodex ingest (s3://.+|\"\$sources\".+)", text):
            yield path.name, shlex.split(line)


def test_every_command_is_one_that_ingest_takes(
    infra: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinodex = runner(monkeypatch, capsys)
    found = list(commands(infra))
    assert {name for name, _ in found} >= {
        "compose.yaml",
        "rayjob.yaml",
        "raycluster.yaml",
        "ingest.sbatch",
        "clusters.md",
    }
    library = {"s3://films/library": str(tmp_path / "library"), "$library": str(tmp_path / "library")}
    shown = {"$address": "10.0.0.1:20001"}
    for name, words in found:
        given = [library.get(word, shown.get(word, word)) for word in words if word != "$@"]
        ran = kinodex("ingest", *given, "--print-config")
        assert ran.code == 0, f"{name}: {ran.err}"
        sign = "metrics_port = 9464 " if name == "compose.yaml" else "ray = true "
        assert sign in ran.out, name


def test_versions_are_those_that_were_tested_together(root: Path, infra: Path) -> None:
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", (root / "constraints.txt").read_text(), re.MULTILINE))
    versions = re.findall(r'rayVersion: "(.+)"', "".join(path.read_text() for path in infra.rglob("*.yaml")))
    assert set(versions) == {pinned["ray"]} == {version("ray")}
    assert f"'ray[default]=={pinned['ray']}'" in (root / "docs" / "clusters.md").read_text(encoding="utf-8")
    assert (infra / "Dockerfile").read_text().count("pip install -c constraints.txt ") == 2
    ours = [
        tag
        for path in infra.rglob("*")
        if path.is_file()
        for tag in re.findall(r"kinodex:([\d.]+)-[cg]pu", path.read_text())
    ]
    assert set(ours) == {version("kinodex")}


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors of a query, whatever stands around them."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for part in ("expr", "lhs", "rhs", "vector_selector"):
        if (inner := getattr(node, part, None)) is not None:
            yield from selectors(inner)
    for argument in getattr(node, "args", ()):
        yield from selectors(argument)


def queries(infra: Path) -> list[tuple[str, str]]:
    """Panel and query, for each way that a run can be told by."""
    board = json.loads((infra / "grafana" / "kinodex.json").read_text(encoding="utf-8"))
    (run,) = (each for each in board["templating"]["list"] if each["name"] == "run")
    ways = [option["value"] for option in run["options"]]
    assert ways == [way.split(" : ")[1] for way in run["query"].split(", ")] == [f"{RAY_PREFIX}kinodex", "kinodex"]
    asked = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
    return [
        (title, query.replace("${run}", way).replace("$__rate_interval", "1m"))
        for title, query in asked
        for way in ways
    ]


def test_the_dashboard_asks_for_what_is_told(infra: Path) -> None:
    used = set()
    for title, query in queries(infra):
        found = list(selectors(promql_parser.parse(query)))
        assert found, query
        for selector in found:
            name = selector.name if selector.name in OF_RAY else selector.name.removeprefix(RAY_PREFIX)
            used.add(name)
            label = {**LABELS, **OF_RAY}[name]
            assert {matcher.name for matcher in selector.matchers.matchers} <= {label}, f"{title}: {query}"
            groups = re.findall(r"by \((\w+)\)", query)
            assert set(groups) <= {label}, f"{title}: {query}"
    assert used == set(LABELS) | set(OF_RAY), "metrics that nobody looks at"


def test_states_and_stages_that_the_dashboard_picks_exist(infra: Path) -> None:
    from kinodex.jobs.ingest.reports import DECODE_STAGES, STATES

    stages: set[str] = {*DECODE_STAGES, "embed", "write"}
    known: dict[str, set[str]] = {"state": set(STATES), "stage": stages, "kind": {"reader", "embedder"}}
    picked = {pair for _, query in queries(infra) for pair in re.findall(r'(\w+)=~?"(.+?)"', query)}
    assert picked
    assert all(set(values.split("|")) <= known[label] for label, values in picked)
    assert {label for label, _ in picked} == set(known)
