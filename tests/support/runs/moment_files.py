"""Files of benchmarks of moments with made-up rows, in the form in which each is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinodex.jobs.eval.benchmarks import MOMENT_BENCHMARKS, read_moment_benchmark
from kinodex.jobs.eval.items import MomentBenchmark


def own_search(id_: str = "1", **changes: Any) -> dict[str, Any]:
    row = {"id": id_, "text": "a dog eats", "video": "film-01.mp4", "relevant": [[3.5, 8.0]], **changes}
    return {name: value for name, value in row.items() if value is not None}


def write_lines(file: Path, *rows: Mapping[str, Any]) -> Path:
    """Write one object of JSON a line."""
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def read_lines(folder: Path, name: str, *rows: Mapping[str, Any]) -> MomentBenchmark:
    """Write the rows as the benchmark's file of lines, and read it."""
    return read_moment_benchmark(name, write_lines(folder / MOMENT_BENCHMARKS[name].files[0], *rows))


def problems(benchmark: MomentBenchmark) -> list[tuple[str, str]]:
    return [(each.where, each.what) for each in benchmark.problems]
