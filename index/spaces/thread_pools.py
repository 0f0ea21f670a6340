"""Threads of the libraries that compute."""

from __future__ import annotations

import os
from typing import Any


def thread_pools() -> Any:
    """Return the pools of threads of all libraries that are loaded now, as threadpoolctl controls them."""
    variable = os.environ.get("KMP_DUPLICATE_LIB_OK")
    from threadpoolctl import ThreadpoolController

    if variable is None:
        os.environ.pop("KMP_DUPLICATE_LIB_OK", None)  # set on import, for all child processes too
    return ThreadpoolController()
