"""Settings of the whole process that one test must not leave changed for the next."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOT_OURS = ("PYTEST_CURRENT_TEST", "RAY_CLIENT_MODE", "TOKENIZERS_PARALLELISM", "TORCHINDUCTOR_CACHE_DIR")
"""Environment variables that pytest changes, and those that open_clip, Ray and torch set when they are loaded."""
OF_LIBRARIES = {
    "huggingface_hub.constants": ("ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_CACHE"),
    "transformers.utils.hub": ("_hf_api",),
    "PIL.Image": ("MAX_IMAGE_PIXELS",),
}
"""Attributes of modules; they count from the test on at which the module is loaded."""
FIRST_USED = ("transformers.utils.hub._hf_api",)
"""Attributes that are None until their first use."""


def snapshot() -> Mapping[str, Any]:
    """Read the settings of this process: environment, folder, signals, threads, logging and those of libraries."""
    state: dict[str, Any] = {"folder": Path.cwd(), "switch interval": sys.getswitchinterval()}
    state |= {f"${name}": value for name, value in os.environ.items() if name not in NOT_OURS}
    state |= {each.name: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
    root = logging.getLogger()
    ours = [each for each in root.handlers if not type(each).__module__.startswith("_pytest")]
    state |= {"root logger's handlers": ours, "root logger's filters": list(root.filters), "log level": root.level}
    if "torch" in sys.modules:
        state["torch threads"] = sys.modules["torch"].get_num_threads()
    for module, names in OF_LIBRARIES.items():
        if module in sys.modules:
            state |= {f"{module}.{name}": getattr(sys.modules[module], name) for name in names}
    return state


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what differs, by its name; a setting of a library that was loaded in between does not count."""
    loaded = {name for name in after.keys() - before.keys() if not name.startswith("$")}
    used = {name for name in FIRST_USED if before.get(name) is None}
    names = (before.keys() | after.keys()) - loaded - used
    return {name: (before.get(name), after.get(name)) for name in sorted(names) if before.get(name) != after.get(name)}
