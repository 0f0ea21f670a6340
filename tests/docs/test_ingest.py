"""docs/ingest.md names every setting with its default, every class of failure, and every column of a manifest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.manifests import COLUMNS
from kinodex.pipeline.errors import PipelineError, SourceError, SubtitleError, VideoError


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "ingest.md").read_text()


def section(page: str, title: str) -> str:
    return page.split(f"# {title}\n")[1].split("\n#")[0]


def test_every_setting_is_there_with_its_default(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section(page, "Settings"), re.MULTILINE)
    assert [name for name, _ in rows] == list(IngestConfig.model_fields)
    for name, told in rows:
        default = IngestConfig.model_fields[name].default
        assert default is None or told.strip(" `").lower() == str(default).lower(), name


def test_every_failure_of_an_ingest_is_there_in_its_stage(page: str) -> None:
    stages: dict[str, set[str]] = {}
    stage = ""
    for row in re.findall(r"^\|([^|]*)\|([^|]*)\|", section(page, "Failures"), re.MULTILINE):
        stage = row[0].strip() or stage
        for each in re.findall(r"`(\w+)`", stage):
            stages.setdefault(each, set()).update(re.findall(r"`(\w+)`", row[1]))
    kinds: list[type[PipelineError]] = [*SourceError.__subclasses__(), *VideoError.__subclasses__(), SubtitleError]
    expected = {kind.__name__ for kind in kinds} | {"WorkerLost", "NotKept"}
    assert set().union(*stages.values()) == expected
    for kind in kinds:
        assert kind.__name__ in stages[kind.stage]


def test_every_column_of_a_manifest_is_there(page: str) -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", section(page, "Manifests"), re.MULTILINE)) == set(COLUMNS)
