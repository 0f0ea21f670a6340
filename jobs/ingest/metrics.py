"""Metrics of a running ingest for Prometheus: at an endpoint of its own process, through Ray's metrics, or both.

All of them are numbers that the coordinator counts anyway. `serve` and `ray_watch` give functions that take each
`Progress`; a run that uses neither does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.commit import Progress, Watch

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

RAY_PREFIX = "ray_"
"""Ray's prefix of the names of all metrics that go through it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, by the name that Prometheus knows it by. `label` None: a single number."""

    name: str
    kind: Literal["counter", "gauge"]
    label: str | None
    help: str
    values: Callable[[Progress], Mapping[str, float]]
    """Numbers by the label's value ("" without a label)."""


METRICS = (
    Metric(
        "kinodex_frames_total",
        "counter",
        None,
        "Frames embedded, with those of retried tasks.",
        lambda progress: {"": progress.frames},
    ),
    Metric(
        "kinodex_video_seconds_total",
        "counter",
        None,
        "Seconds of video read.",
        lambda progress: {"": progress.video_s},
    ),
    Metric(
        "kinodex_videos_total",
        "counter",
        "state",
        "Sources that have their outcome: indexed, already there, failed.",
        lambda progress: progress.states,
    ),
    Metric(
        "kinodex_failures_total",
        "counter",
        "error_class",
        "Sources that failed, by the class of the error.",
        lambda progress: progress.failures,
    ),
    Metric(
        "kinodex_retries_total",
        "counter",
        None,
        "Tasks retried because a worker was lost.",
        lambda progress: {"": progress.retried},
    ),
    Metric(
        "kinodex_stage_seconds_total",
        "counter",
        "stage",
        "Seconds of ended tasks by stage, summed over workers: fetch, decode, jpeg, prepare, subtitles, embed, write.",
        lambda progress: progress.seconds,
    ),
    Metric(
        "kinodex_sources",
        "gauge",
        None,
        "Sources that this run has to work through.",
        lambda progress: {"": progress.total},
    ),
    Metric(
        "kinodex_queue_tasks",
        "gauge",
        "queue",
        "Tasks that wait to be identified or read, and those running: identify, read, running.",
        lambda progress: progress.queues,
    ),
    Metric(
        "kinodex_workers",
        "gauge",
        "kind",
        "Workers that read, and copies of the model: reader, embedder.",
        lambda progress: progress.workers,
    ),
)
"""In the order of the table in docs/clusters.md."""

GPU_BUSY = "kinodex_gpu_busy_ratio"
GPU_HELP = "Part of the last second or so in which a GPU of this machine was at work, 0 to 1, as NVML reports it."


@contextmanager
def serve(host: str, port: int) -> Iterator[Watch]:
    """Serve the latest progress at http://host:port/metrics; yields the function that takes each progress.

    Raises:
        UsageError: the port cannot be opened.
    """
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
    """Pass each progress on to Ray's metrics, which every node serves for Prometheus.

    The utilisation of GPUs is left out: Ray itself has it for every node.
    """
    from ray.util.metrics import Counter, Gauge

    def instrument_of(metric: Metric) -> Any:
        kind = Counter if metric.kind == "counter" else Gauge
        return kind(metric.name, metric.help, tag_keys=(metric.label,) if metric.label else ())

    instruments = [(metric, instrument_of(metric)) for metric in METRICS]
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
