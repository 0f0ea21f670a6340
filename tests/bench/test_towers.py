"""`kinodex bench towers`: every arithmetic of a tower on the same pictures."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from kinodex.jobs.errors import UsageError
from tests.bench.towers import (
    BF16,
    BF16_LAST,
    CHANNELS_LAST,
    FLOAT32,
    ONNX_RUNTIME,
    TowerFigures,
    bench_towers,
    table,
)


def test_each_arithmetic_of_the_built_in_tower_is_measured():
    before = torch.get_num_threads()
    rows = [asdict(each) for each in bench_towers(["builtin"], rounds=1, batch=4)]
    assert [row["arithmetic"] for row in rows] == [FLOAT32, CHANNELS_LAST, BF16, BF16_LAST, ONNX_RUNTIME]
    by_name = {row["arithmetic"]: row for row in rows}
    assert {row["space"] for row in rows} == {"builtin"}
    assert by_name[FLOAT32]["ratio"] == 1.0
    for row in rows:
        assert row["million_parameters"] == pytest.approx(1.434, abs=0.001)
        assert row["pictures_s"] / by_name[FLOAT32]["pictures_s"] == pytest.approx(row["ratio"])
        assert row["least_cosine"] > (0.999999 if "float32" in row["arithmetic"] else 0.99)
    assert by_name[BF16]["least_cosine"] < 0.99999  # its tower is another
    assert torch.get_num_threads() == before


@pytest.mark.slow
def test_a_tower_that_cannot_be_exported_is_measured_by_torch(tiny_model, tmp_path, monkeypatch):
    """The reason is said; without onnx it is that one."""
    import sys

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "onnx", None)
    said: list[str] = []
    name = f"local-dir:{tiny_model('space')}"
    figures = bench_towers([name], rounds=1, batch=2, report=said.append)
    assert [each.arithmetic for each in figures] == [FLOAT32, CHANNELS_LAST, BF16, BF16_LAST]
    assert len(said) == 1
    assert said[0].startswith(f"{name} by ONNX Runtime was left out: ")


def test_more_pictures_than_there_are():
    with pytest.raises(UsageError, match="got --batch 65; give 1 to 64"):
        bench_towers(["builtin"], rounds=1, batch=65)


def test_table():
    row = TowerFigures("builtin", 1.434, ONNX_RUNTIME, 1172.12, 2.345, 0.99999991)
    assert table([row]).splitlines() == [
        "| space | million parameters | arithmetic | pictures a second | ratio | least cosine |",
        "|---|---|---|---|---|---|",
        "| builtin | 1.4 | ONNX Runtime float32 | 1172.1 | 2.35 | 0.9999999 |",
    ]
