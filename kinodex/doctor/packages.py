"""Checks of packages for `kinodex doctor`: those of the base install and of each extra, by kinodex's own metadata."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement

from kinodex.doctor.check_result import CheckResult

of_packages = partial(CheckResult, "packages")
BASE = "base"
PURPOSES = {
    "ingest": "reading videos",
    "hf": "the default space, captions, detections, speech",
    "text": "text on screen",
    "ray": "ingest and eval on several processes and machines",
    "eval": "reports of kinodex eval",
    "train": "training a master",
    "decord": "another decoder",
    "torchcodec": "another decoder, NVDEC's too",
    "http": "videos on the web",
    "s3": "videos in object stores",
    "mcp": "a library as an assistant's tools",
    "metrics": "figures of an ingest for Prometheus",
}
FOR_DEVELOPERS = ("dev", "docs")


def check_packages() -> list[CheckResult]:
    wanted = [Requirement(text) for text in requires("kinodex") or ()]
    base = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    extras = [name for name in metadata("kinodex").get_all("Provides-Extra") or () if name not in FOR_DEVELOPERS]
    of_extra = {
        name: [each for each in wanted if each.marker and each.marker.evaluate({"extra": name}) and each not in base]
        for name in extras
    }
    return [_finding(BASE, base, "kinodex"), *(_finding(name, of_extra[name], f"kinodex[{name}]") for name in extras)]


def _finding(name: str, wanted: Sequence[Requirement], install: str) -> CheckResult:
    """Check one install. A missing base package counts as broken: kinodex does not start without it."""
    held = {each.name: _version(each.name) for each in wanted}
    missing = [each for each in wanted if held[each.name] is None]
    unfit = [
        f"{each.name} {number} is not {each.specifier}"
        for each in wanted
        if (number := held[each.name]) is not None and not each.specifier.contains(number, prereleases=True)
    ]
    here = ", ".join(f"{package} {number}" for package, number in held.items() if number is not None)
    purpose = f" ({PURPOSES[name]})" if name in PURPOSES else ""
    if unfit:
        return of_packages(name, "broken", f"{'; '.join(unfit)}{purpose}", f"pip install -U '{install}'")
    if missing:
        brings = ", ".join(f"{each.name}{each.specifier}" for each in missing)
        message = (f"has {here}" if here else "not installed") + purpose
        todo = f"pip install '{install}', which brings {brings}"
        return of_packages(name, "broken" if name == BASE else "missing", message, todo)
    return of_packages(name, "ok", here + purpose)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
