"""The server of `kinodex serve` over drawn films with the built-in model, started once for all tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.serve_server import Client, serving


@pytest.fixture(scope="session")
def client(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving([library], tmp_path_factory.mktemp("traces"), at_once=50) as client:
        yield client
