"""What a running ingest tells Prometheus: through an endpoint of its own process, through Ray's metrics, or both.

All of it is what the coordinator counts anyway. `served` and `fed_to_ray` give functions that take each `Progress`;
where neither is asked for, nothing here is imported by a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from jobs.errors import UsageError
from jobs.ingest.outcomes import Progress

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

RAY_PREFIX = "ray_"
"""What Ray puts before the name of every metric that goes through it."""

Watch = Callable[[Progress], None]


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
        "Frames embedded, those that were done again included.",
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
        "Pieces of work done again because a worker was lost.",
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
        "Sources that this run has to see to.",
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
GPU_HELP = "Part of the last second or so in which a GPU of this machine was at work, 0 to 1, as NVML tells it."


@contextmanager
def served(host: str, port: int) -> Iterator[Watch]:
    """Give a function that takes each progress; http://host:port/metrics tells the latest as long as this lasts.

    Raises:
        UsageError: the port cannot be had.
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
    """The collector behind the endpoint: nothing is worked out before somebody asks."""

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
    """How busy each GPU of this machine is, 0 to 1; none where there is no NVIDIA driver, or it does not tell."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        return [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100 for handle in handles]
    except pynvml.NVMLError:
        return []  # a machine without a GPU, or a part of one (MIG), of which NVML does not tell this


def fed_to_ray() -> Watch:
    """A function that passes each progress on to Ray's metrics, which every node serves for Prometheus.

    How busy GPUs are is not among it: Ray itself tells that of every node.
    """
    from ray.util.metrics import Counter, Gauge

    def made(metric: Metric) -> Any:
        kind = Counter if metric.kind == "counter" else Gauge
        return kind(metric.name, metric.help, tag_keys=(metric.label,) if metric.label else ())

    fed = [(metric, made(metric)) for metric in METRICS]
    told: dict[tuple[str, str], float] = {}

    def feed(progress: Progress) -> None:
        for metric, instrument in fed:
            for value, number in metric.values(progress).items():
                tags = {metric.label: value} if metric.label else {}
                if metric.kind == "gauge":
                    instrument.set(number, tags)
                elif (more := number - told.get((metric.name, value), 0.0)) > 0:
                    instrument.inc(more, tags)
                    told[metric.name, value] = number

    return feed
