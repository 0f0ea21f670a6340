"""The GPU driver: its lines when it answers, its reason when it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kinodex.doctor.machine import check_gpu


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        ("echo Toy, 1.0, 2 MiB, 1 MiB", "ok", "Toy, 1.0, 2 MiB, 1 MiB (name, driver, memory, used)"),
        ("echo mismatch of versions >&2; exit 9", "broken", "nvidia-smi: mismatch of versions"),
        ("true", "broken", "nvidia-smi: lists no GPU"),
    ],
)
def test_a_driver(script: str, state: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\n{script}\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = check_gpu()[0]
    assert (found.state, found.said) == (state, said)


def test_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = check_gpu()[0]
    assert (found.name, found.state) == ("driver", "missing")
