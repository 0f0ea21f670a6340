"""Libraries that tests of several folders of `jobs` read; made once, and imported only when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from index.library import Library
    from tests.support.viewer_library import Shown


@pytest.fixture(scope="session")
def mcp_library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A film of 30 s, `harbour`, with a transcript and detections; tests only read it."""
    from tests.support.mcp_client import make_library

    return make_library(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A library of one video, and two traces over it; tests only read them."""
    from tests.support.viewer_library import make_shown

    return make_shown(tmp_path_factory.mktemp("viewer"))
