"""Packages of the base install and of extras, by metadata made for the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.doctor.machine import check_packages
from tests.support.runs.check_results import by_name, states


def test_what_an_extra_would_bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "kinodex-9.dist-info"
    info.mkdir()
    lines = [
        "Metadata-Version: 2.4", "Name: kinodex", "Version: 9", "Requires-Dist: numpy>=1.26",
        *(f"Provides-Extra: {name}" for name in ("s3", "ray", "http", "dev")),
        "Requires-Dist: surely-not-there>=3.1; extra == 's3'", "Requires-Dist: numpy>=1; extra == 's3'",
        "Requires-Dist: pillow>=99; extra == 'ray'", "Requires-Dist: pillow>=1; extra == 'http'",
    ]  # fmt: skip
    (info / "METADATA").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = by_name(check_packages())
    assert states([*found.values()]) == {"base": "ok", "s3": "missing", "ray": "broken", "http": "ok"}
    assert found["s3"].todo == "pip install 'kinodex[s3]', which brings surely-not-there>=3.1"
    assert "is not >=99" in found["ray"].said
