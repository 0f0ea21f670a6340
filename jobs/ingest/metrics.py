"""Metrics of a running ingest for Prometheus: at an endpoint of its own process, through Ray's metrics, or both.

All of them are numbers that the coordinator counts anyway. `serve` and `ray_watch` give functions that take each
`Progress`; a run that uses neither does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.reports import Progress, Watch

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

RAY_PREFIX = "ray_"
"""Ray's prefix of the names of all metrics that go through it."""


class Metric(NamedTuple):
    """One metric, by the name that Prometheus knows it by. `label` None: a single number."""

    name: str
    kind: Literal["counter", "gauge"]
    label: str | None
    values: Callable[[Progress], Mapping[str, float]]
    """Numbers by the label's value ("" without a label)."""
    help: str


def _one(field: str) -> Callable[[Progress], Mapping[str, float]]:
    return lambda progress: {"": getattr(progress, field)}


STAGES = "fetch, decode, jpeg, prepare, subtitles, embed, write"
METRICS = (
    Metric("kinodex_frames_total", "counter", None, _one("frames"), "Frames embedded, with those of retried tasks."),
    Metric("kinodex_video_seconds_total", "counter", None, _one("video_s"), "Seconds of video read."),
    Metric(
        *("kinodex_videos_total", "counter", "state", attrgetter("states")),
        help="Sources that have their outcome: indexed, already there, failed.",
    ),
    Metric(
        *("kinodex_failures_total", "counter", "error_class", attrgetter("failures")),
        help="Sources that failed, by the class of the error.",
    ),
    Metric("kinodex_retries_total", "counter", None, _one("retried"), "Tasks retried because a worker was lost."),
    Metric(
        *("kinodex_stage_seconds_total", "counter", "stage", attrgetter("seconds")),
        help=f"Seconds of ended tasks by stage, summed over workers: {STAGES}.",
    ),
    Metric("kinodex_sources", "gauge", None, _one("total"), "Sources that this run has to work through."),
    Metric(
        *("kinodex_queue_tasks", "gauge", "queue", attrgetter("queues")),
        help="Tasks that wait to be identified or read, and those running: identify, read, running.",
    ),
    Metric(
        *("kinodex_workers", "gauge", "kind", attrgetter("workers")),
        help="Workers that read, and copies of the model: reader, embedder.",
    ),
)
"""In the order of the table in docs/clusters.md."""

GPU_BUSY = "kinodex_gpu_busy_ratio"
GPU_HELP = "Part of the last second or so in which a GPU of this machine was at work, 0 to 1, as NVML reports it."


@contextmanager
def serve(host: str, port: int) -> Iterator[Watch]:
    """Serve the latest progress at http://host:port/metrics; yields the function that takes each progress."""
    from prometheus_client import CollectorRegistry, start_http_server

    latest = _Latest()
    registry = CollectorRegistry()
    registry.register(latest)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise UsageError(
            f"cannot serve metrics at {host}:{port}: {error.strerror}; give a --metrics-port that is free, and "
            "--set metrics_host= an address of this machine"
        ) from error
    try:
        yield latest.take
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Latest:
    """The collector behind the endpoint: nothing is computed before a request."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def take(self, progress: Progress) -> None:
        self._progress = progress

    def collect(self) -> Iterator[Family]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        progress = self._progress
        for metric in METRICS:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=[metric.label] if metric.label else [])
            for value, number in metric.values(progress).items() if progress is not None else ():
                family.add_metric([value] if metric.label else [], number)
            yield family
        busy = GaugeMetricFamily(GPU_BUSY, GPU_HELP, labels=["gpu"])
        for number, part in enumerate(gpus_busy()):
            busy.add_metric([str(number)], part)
        yield busy


def gpus_busy() -> list[float]:
    """Utilisation of each GPU of this machine, 0 to 1; empty without an NVIDIA driver, or where it gives none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        return [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in handles]
    except pynvml.NVMLError:
        return []  # a machine without a GPU, or a part of one (MIG), of which NVML gives no utilisation


def ray_watch() -> Watch:
    """Pass each progress on to Ray's metrics, which every node serves; Ray itself has the utilisation of GPUs."""
    from ray.util.metrics import Counter, Gauge

    kinds: dict[str, Any] = {"counter": Counter, "gauge": Gauge}
    instruments = [
        (each, kinds[each.kind](each.name, each.help, tag_keys=(each.label,) if each.label else ())) for each in METRICS
    ]
    sent: dict[tuple[str, str], float] = {}

    def feed(progress: Progress) -> None:
        for metric, instrument in instruments:
            for value, number in metric.values(progress).items():
                tags = {metric.label: value} if metric.label else {}
                if metric.kind == "gauge":
                    instrument.set(number, tags)
                elif (more := number - sent.get((metric.name, value), 0.0)) > 0:
                    instrument.inc(more, tags)
                    sent[metric.name, value] = number

    return feed
