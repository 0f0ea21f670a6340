"""`kinodex.jobs.ingest` names what others use, and loads it when it is first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "ray", "lance", "av", "pyarrow", "numpy", "pydantic"}


def test_every_exported_name_is_there_and_typed(root: Path) -> None:
    for name in jobs.ingest.__all__:
        assert getattr(jobs.ingest, name).__module__.startswith("kinodex.jobs.ingest.")
    tree = ast.parse((root / "jobs" / "ingest" / "__init__.py").read_text())
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(jobs.ingest.__all__) == sorted({*imported} - {"annotations", "import_module", "TYPE_CHECKING", "Any"})


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'ingest_all'; its names are IngestConfig, "):
        _ = jobs.ingest.ingest_all


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import sys, kinodex.jobs.ingest; print(*(name.partition('.')[0] for name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY.intersection(loaded)
