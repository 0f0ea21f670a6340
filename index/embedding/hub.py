"""The hub's client without its long retries, and open_clip without its log lines.

Both are switches of the whole process: the client reads one module constant, and open_clip logs through the root
logger. So each is turned by the first block that needs it and turned back by the last one that ends, however blocks
nest and whichever threads they run in.
"""

from __future__ import annotations

import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PROBE_TIMEOUT_S = 5.0


class SharedSwitch:
    """A switch of the whole process that stays on while any block holds it.

    `turn_on` returns the function that turns it off again; both run under a lock, once for all overlapping blocks.
    """

    def __init__(self, turn_on: Callable[[], Callable[[], None]]) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self._turn_on = turn_on
        self._turn_off: Callable[[], None] = lambda: None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the switch within this block."""
        with self.lock:
            if not self.holders:
                self._turn_off = self._turn_on()
            self.holders += 1
        try:
            yield
        finally:
            with self.lock:
                self.holders -= 1
                if not self.holders:
                    self._turn_off()


def _use_cache_only() -> Callable[[], None]:
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    return lambda: setattr(constants, "HF_HUB_OFFLINE", before)


def _drop_open_clip_logs() -> Callable[[], None]:
    """Filter the root logger, and give it a handler: `logging.warning` would install one for the whole program."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def not_open_clip(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    def turn_off() -> None:
        root.removeFilter(not_open_clip)
        root.removeHandler(handler)

    root.addHandler(handler)
    root.addFilter(not_open_clip)
    return turn_off


_cache_only = SharedSwitch(_use_cache_only)
_without_open_clip_logs = SharedSwitch(_drop_open_clip_logs)


@contextmanager
def quick_hub() -> Iterator[bool]:
    """Use the hub's cache alone within this block if the hub is silent; yield True if the hub answers.

    The client retries each file five times with growing pauses: 46 s for one model on a machine without a
    network before it reports an error. One request beforehand settles it; files already in the cache still load.
    """
    from huggingface_hub import constants

    with _cache_only.lock:
        is_held, is_offline = _cache_only.holders > 0, constants.HF_HUB_OFFLINE
    if is_offline and not is_held:  # the user's own setting
        yield False
    elif is_held or not _answers(constants.ENDPOINT):
        with _cache_only.held():
            yield False
    else:
        yield True


@contextmanager
def silent_root_logger() -> Iterator[None]:
    """Drop what open_clip logs within this block: what matters of it becomes an error of ours."""
    with _without_open_clip_logs.held():
        yield


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_TIMEOUT_S):
            return True
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except OSError:
        return False
