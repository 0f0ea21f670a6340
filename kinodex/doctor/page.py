"""The page of `kinodex doctor`: all checks in order, and those of its lines that are needed and not ok."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kinodex.doctor.check_result import CheckResult
from kinodex.doctor.cluster import check_ray
from kinodex.doctor.decoders import check_decoders
from kinodex.doctor.endpoint import check_endpoint
from kinodex.doctor.gpu import check_gpu
from kinodex.doctor.keys import check_keys
from kinodex.doctor.library import check_library
from kinodex.doctor.machine import check_machine
from kinodex.doctor.models import check_models
from kinodex.doctor.packages import check_packages
from kinodex.doctor.tasks import check_tasks
from kinodex.jobs.errors import UsageError


def failed_needs(found: Sequence[CheckResult], needed: Collection[str]) -> list[CheckResult]:
    """Needed lines that are not ok; raises UsageError for a name that no line has."""
    names = list(dict.fromkeys(each.name for each in found))
    if unknown := sorted({*needed}.difference(names)):
        raise UsageError(f"got --need {unknown[0]}; this page has lines for {', '.join(names)}")
    return [each for each in found if each.name in needed and each.state != "ok"]


def run_checks(
    library: str | None, base_url: str | None, model: str | None, key_env: str | None, ray_address: str | None
) -> list[CheckResult]:
    """Return all lines of the page, the verdicts by task first; raises BadSettings for a URL that is none."""
    found = [*check_machine(), *check_packages(), *check_decoders(), *check_gpu()]
    found += [*check_models(), *check_keys(key_env)]
    found += check_endpoint(base_url, model, key_env) if base_url is not None else []
    found += check_library(library) if library is not None else []
    return [*check_tasks(found, library), *check_ray(ray_address), *found]
