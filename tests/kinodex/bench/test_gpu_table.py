"""The table of `kinodex bench gpu`: figures, what was left out, and rows that are not equal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from kinodex.bench.gpu import (
    ALL_ON_GPU,
    HEAD,
    REFERENCE,
    Equality,
    GpuFigures,
    Rate,
    Stage,
    WholeWay,
    table,
    write_files,
)
from kinodex.bench.ingest import WholeIngest

GPU = {"utilization.gpu": 81.0, "utilization.decoder": 64.4, "memory.used": 4321.0}
INGEST = WholeIngest(4, 600, 600.0, 8.0, {"decode": 0.5}, "bfloat16", {"a reason | two": 1}, 1500.0, 0.0, GPU)
WHOLE = WholeWay(ALL_ON_GPU, INGEST, 0.875, Equality(600, True, 0.9995, 0.9999, 38.25))
FIGURES = GpuFigures(
    picture="film.mp4",
    space="builtin",
    fps=2.0,
    machine="a machine",
    versions="torch 2",
    seconds=500.0,
    stages=(
        Stage("decode, NVDEC", "decode", "nvdec", "cuda", Rate(900.0, 700.0, 0.0, GPU)),
        Stage("embed, GPU", "embed", "auto", "cuda", missing="torch sees no GPU here"),
    ),
    ways=(WHOLE, WholeWay(REFERENCE, missing="no time was left")),
)


def test_every_row_has_all_columns_and_the_goal_can_be_read_off() -> None:
    rows = [line for line in table(FIGURES).splitlines() if line.startswith("|")]
    assert rows[0] == HEAD
    assert {row.count("|") for row in rows} == {HEAD.count("|")}
    decode, embed, whole, reference = rows[2:]
    assert "| 900.0 | 450 |" in decode
    assert "left out: torch sees no GPU here" in embed
    assert "| 75.0 | 75 | 0.88 | decode 50% | cores 81 %, NVDEC 64 %, 4,321 MiB | 1,500 + 0 |" in whole
    assert "equal: times equal, cosine at least 0.99950, on average 0.99990, pictures at least 38.2 dB" in whole
    assert "4 films, 600 frames committed; bfloat16; PyAV read 1: a reason / two" in whole
    assert "left out: no time was left" in reference


def test_rows_that_differ_are_marked() -> None:
    worse = replace(WHOLE, equality=Equality(600, False, 0.9, 0.99, None))
    assert "**not equal**: **times differ**" in table(replace(FIGURES, ways=(worse,)))


def test_the_files_hold_the_same(tmp_path: Path) -> None:
    write_files(FIGURES, tmp_path / "new")
    assert json.loads((tmp_path / "new" / "gpu.json").read_text())["ways"][0]["part"] == 0.875
    assert (tmp_path / "new" / "gpu.md").read_text() == table(FIGURES) + "\n"
