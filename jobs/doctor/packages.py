"""Packages that the base install and each extra need, by kinodex's own metadata."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement

from jobs.doctor import CheckResult

SECTION = "packages"
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
    """Check the base install, then every extra, as this kinodex was installed."""
    wanted = [Requirement(text) for text in requires("kinodex") or ()]
    base = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    extras = [name for name in metadata("kinodex").get_all("Provides-Extra") or () if name not in FOR_DEVELOPERS]
    of_extra = {name: [each for each in wanted if _is_of(each, name) and each not in base] for name in extras}
    return [_finding(BASE, base, "kinodex"), *(_finding(name, of_extra[name], f"kinodex[{name}]") for name in extras)]


def _is_of(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})


def _finding(name: str, wanted: Sequence[Requirement], install: str) -> CheckResult:
    """Check one install. A missing base package counts as broken: kinodex does not start without it."""
    held = {each.name: _version(each.name) for each in wanted}
    missing = [each for each in wanted if held[each.name] is None]
    unfit = [f"{each.name} {held[each.name]} is not {each.specifier}" for each in wanted if not _fits(each, held)]
    here = ", ".join(f"{package} {number}" for package, number in held.items() if number is not None)
    purpose = f" ({PURPOSES[name]})" if name in PURPOSES else ""
    if unfit:
        return CheckResult(SECTION, name, "broken", f"{'; '.join(unfit)}{purpose}", f"pip install -U '{install}'")
    if missing:
        brings = ", ".join(f"{each.name}{each.specifier}" for each in missing)
        message = (f"has {here}" if here else "not installed") + purpose
        todo = f"pip install '{install}', which brings {brings}"
        return CheckResult(SECTION, name, "broken" if name == BASE else "missing", message, todo)
    return CheckResult(SECTION, name, "ok", here + purpose)


def _fits(wanted: Requirement, held: dict[str, str | None]) -> bool:
    number = held[wanted.name]
    return number is None or wanted.specifier.contains(number, prereleases=True)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
