"""Fixtures that tests of the ways in share with those of jobs."""

from __future__ import annotations

from tests.jobs.conftest import ctrl_c as ctrl_c
from tests.jobs.conftest import described as described
from tests.jobs.conftest import mcp_library as mcp_library
from tests.jobs.conftest import shown as shown
from tests.jobs.conftest import small_films as small_films
from tests.jobs.conftest import small_library as small_library
