"""What surrounds loading a model: files from the hub, quickly there or quickly not, and no chatter."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

PROBE_TIMEOUT_S = 5.0


@contextmanager
def quick_hub() -> Iterator[bool]:
    """Within this block the hub's client uses its cache alone if the hub is silent; gives whether it answers.

    The client retries each file five times with growing pauses: 46 s for one model on a machine without a
    network before it says so. One request beforehand settles it; files already in the cache still load.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _answers(constants.ENDPOINT)
    try:
        yield not constants.HF_HUB_OFFLINE
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def silent_root_logger() -> Iterator[None]:
    """Within this block what open_clip logs is dropped: what matters of it becomes an error of ours.

    It logs with `logging.warning(...)`, that is through the root logger, which then also installs a handler
    for the whole program.
    """
    root, handler = logging.getLogger(), logging.NullHandler()

    def not_open_clip(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    root.addHandler(handler)
    root.addFilter(not_open_clip)
    try:
        yield
    finally:
        root.removeFilter(not_open_clip)
        root.removeHandler(handler)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_TIMEOUT_S):
            return True
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except OSError:
        return False
