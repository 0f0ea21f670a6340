"""The report of a run as it begins, and the row of it that the library keeps."""

from __future__ import annotations

import json
import platform
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version

from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.reports import IngestReport, summary

LEASE = "ingest"
RUNNING = "running"

MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "onnxruntime", "pylance", "pyarrow")


def begun_report(config: IngestConfig, library: Library, left_out: int) -> IngestReport:
    versions = {"python": platform.python_version()}
    for name in MEASURED_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return IngestReport(
        run_id=secrets.token_hex(8),
        started_at=datetime.now(UTC),
        seconds=0.0,
        outcomes=(),
        left_out=left_out,
        settings=config.model_dump(mode="json") | {"space_digest": library.fingerprint.digest},
        versions=versions,
    )


def run_row(report: IngestReport, state: str) -> RunRow:
    ended = None if state == RUNNING else report.started_at + timedelta(seconds=report.seconds)
    numbers = json.loads(json.dumps(summary(report), default=str))
    return RunRow(report.run_id, LEASE, state, report.started_at, ended, numbers)
