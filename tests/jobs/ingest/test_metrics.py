"""Metrics of a run for Prometheus: at the endpoint of its own process, and through Ray, where the rows are the same."""

from __future__ import annotations

import os
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.metrics import GPU_BUSY, METRICS, RAY_PREFIX, gpus_busy, serve
from kinodex.jobs.ingest.reports import IngestReport, Progress
from kinodex.jobs.ingest.run import run_ingest
from kinodex.jobs.ray_cluster import restored_process
from kinodex.pipeline.sources import list_sources
from tests.support.command import bad, runner
from tests.support.libraries.corpus import assert_same
from tests.world.drawn_space import DRAWN

Metrics = dict[str, dict[str, float]]


LABELS = {metric.name: metric.label for metric in METRICS} | {GPU_BUSY: "gpu"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def metrics_at(port: int, prefix: str = "") -> Metrics:
    """The metrics of ours that an endpoint tells: by name, then by label's value."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        families = list(text_string_to_metric_families(reply.read().decode()))
    metrics: Metrics = {}
    for sample in (sample for family in families for sample in family.samples):
        name = sample.name.removeprefix(prefix)
        if sample.name.startswith(prefix) and name in LABELS:
            label = LABELS[name]
            metrics.setdefault(name, {})[sample.labels[label] if label else ""] = sample.value
    return metrics


def watched_ingest(corpus: Path, library: Path, watch: Callable[[Progress], None], **settings: Any) -> IngestReport:
    config = IngestConfig(space=DRAWN, workers=1, **settings)
    return run_ingest(config, list_sources([str(corpus)]), str(library), watch)


def assert_right(metrics: Metrics, report: IngestReport) -> None:
    """The numbers at the end of a run that began with nothing are those of its report."""
    assert metrics["kinodex_frames_total"][""] == report.frames > 0
    assert metrics["kinodex_video_seconds_total"][""] == pytest.approx(report.video_s)
    assert metrics["kinodex_videos_total"] == {"indexed": 4, "already there": 1, "failed": 1}
    assert report.count("indexed") == 4
    failed = next(outcome for outcome in report.outcomes if outcome.state == "failed")
    assert metrics["kinodex_failures_total"] == {failed.error_class: 1}
    assert report.retried == 0 == metrics.get("kinodex_retries_total", {}).get("", 0)  # Ray leaves out what never was
    assert metrics["kinodex_sources"][""] == 6
    assert metrics["kinodex_queue_tasks"] == {"identify": 0, "read": 0, "running": 0}
    assert metrics["kinodex_workers"] == {"reader": report.workers, "embedder": report.embedders}
    stages = metrics["kinodex_stage_seconds_total"]
    assert set(stages) == set(report.seconds_by_stage) >= {"fetch", "decode", "embed", "write"}
    assert stages["embed"] == pytest.approx(report.seconds_by_stage["embed"], abs=1e-3)


@pytest.mark.slow
def test_an_ingest_here_tells_how_it_goes_until_it_is_over(corpus: Path, tmp_path: Path) -> None:
    port, seen = free_port(), []

    def ask(progress: Progress) -> None:
        seen.append(metrics_at(port))

    report = watched_ingest(corpus, tmp_path / "library", ask, metrics_port=port, bundle=1)
    assert_right(seen[-1], report)
    assert seen[0]["kinodex_queue_tasks"]["identify"] > 0
    frames = [each["kinodex_frames_total"][""] for each in seen]
    assert frames == sorted(frames)
    assert len(seen[-1].get(GPU_BUSY, {})) == len(gpus_busy())
    with pytest.raises(OSError, match="refused"):
        metrics_at(port)


@pytest.fixture
def ray_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A node of Ray in this process, and the port where it serves metrics; its workers' temporary files are ours."""
    import ray

    port = free_port()
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())  # Ray's sockets: a short path
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    with restored_process():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="lance is not fork-safe")  # as jobs.ray_cluster has it
            ray.init(
                address="local",
                num_cpus=3,
                include_dashboard=False,
                log_to_driver=False,
                _metrics_export_port=port,
                _system_config={"metrics_report_interval_ms": 200},
            )
        try:
            yield port
        finally:
            ray.shutdown(wait_for_processes=True)  # else one that takes a second to die is left behind


@pytest.mark.ray
@pytest.mark.slow
def test_an_ingest_on_ray_leaves_the_same_rows_and_tells_the_same_through_ray(
    corpus: Path, whole: Library, tmp_path: Path, ray_port: int
) -> None:
    report = watched_ingest(corpus, tmp_path / "library", lambda progress: None, ray=True)
    library = Library.open(str(tmp_path / "library"))
    assert_same(library, whole)
    assert library.ingest_log.runs()[0].report["settings"]["ray"] is True
    assert list((tmp_path / "temporary").glob("kinodex-*")) == []
    assert "RAY_ADDRESS" not in os.environ
    metrics: Metrics = {}
    while sum(metrics.get("kinodex_videos_total", {}).values()) < 6:  # Ray passes them on when it likes
        time.sleep(0.2)
        metrics = metrics_at(ray_port, RAY_PREFIX)
    assert_right(metrics, report)


def test_a_port_that_is_taken_is_said_before_anything_is_read(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}: Address already in use; give a --metrics-port"):
            serve("127.0.0.1", port).__enter__()
        kinodex = runner(monkeypatch, capsys)
        place = tmp_path / "library"
        arguments = ("ingest", corpus, "--library", place, "--space", DRAWN, "--metrics-port", port)
        bad(kinodex, *arguments, code=2, says="cannot serve metrics")
        assert not place.exists()


def test_the_names_are_documented(root: Path) -> None:
    page = (root / "docs" / "clusters.md").read_text(encoding="utf-8")
    for name, label in LABELS.items():
        labelled = f"`{name}{{{label}}}`" if label else f"`{name}`"
        assert f"| {labelled} |" in page, name
