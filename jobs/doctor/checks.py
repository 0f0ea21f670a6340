"""Run all checks of the doctor's page, and pick out what is needed and does not work."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from index.errors import KinodexError
from index.library import Library
from index.maintenance.maintain import health as check_health
from jobs.doctor import CheckResult
from jobs.doctor.decoders import check_decoders
from jobs.doctor.endpoint import check_endpoint
from jobs.doctor.gpu import check_gpu
from jobs.doctor.machine import check_machine
from jobs.doctor.models import check_models
from jobs.doctor.packages import check_packages
from jobs.doctor.ray import check_ray
from jobs.errors import UsageError

KEYS = {
    "OPENAI_API_KEY": "for language models that are not on this machine or a private network",
    "HF_TOKEN": "for models of the hub that ask for consent",
    "AWS_ACCESS_KEY_ID": "for s3://, unless a profile or role gives access",
    "AWS_SECRET_ACCESS_KEY": "for s3://, unless a profile or role gives access",
}


def run_checks(
    library: str | None, base_url: str | None, model: str | None, key_env: str | None, ray_address: str | None
) -> list[CheckResult]:
    """All lines of the page. A library and an endpoint are checked only if they are named.

    Raises BadSettings for a URL that is none.
    """
    found = [*check_machine(), *check_packages(), *check_decoders(), *check_gpu(), *check_ray(ray_address)]
    found += [*check_models(), *check_keys(key_env)]
    found += check_endpoint(base_url, model, key_env) if base_url is not None else []
    return found + (check_library(library) if library is not None else [])


def failed_needs(found: Sequence[CheckResult], needed: Collection[str]) -> list[CheckResult]:
    """Needed lines that are not ok; raises UsageError for a name that no line has."""
    names = list(dict.fromkeys(each.name for each in found))
    if unknown := sorted({*needed}.difference(names)):
        raise UsageError(f"got --need {unknown[0]}; this page has lines for {', '.join(names)}")
    return [each for each in found if each.name in needed and each.state != "ok"]


def check_keys(extra: str | None = None) -> list[CheckResult]:
    """Check that the variables with keys are set, and one more by its name; no value is ever shown."""
    variables = KEYS if extra is None or extra in KEYS else {extra: "for the endpoint", **KEYS}
    return [
        CheckResult("keys", name, "ok", f"set, {purpose}")
        if os.environ.get(name, "").strip()
        else CheckResult("keys", name, "missing", f"not set, {purpose}", f"export {name}=... where it is needed")
        for name, purpose in variables.items()
    ]


def check_library(uri: str) -> list[CheckResult]:
    """Check in one line that a library opens and that all its rows are there."""
    section = name = "library"
    try:
        library = Library.open(uri)
        health = check_health(library)
    except KinodexError as error:
        return [CheckResult(section, name, "broken", str(error))]
    frames = sum(row.frames for row in library.videos())
    at_work = f", at work: {', '.join(map(str, health.at_work))}" if health.at_work else ""
    size = f"{uri}: {health.audit.videos:,} videos, {frames:,} frames, {health.data_bytes / 1e9:.2f} GB{at_work}"
    if health.problems:
        more = f" and {len(health.problems) - 1:,} more" if len(health.problems) > 1 else ""
        return [CheckResult(section, name, "broken", f"{size}; {health.problems[0]}{more}", f"kinodex maintain {uri}")]
    return [CheckResult(section, name, "ok", f"{size}; every row is where it should be")]
