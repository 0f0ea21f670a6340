"""Indexes and files of a library kept in order beside a run that writes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kinodex.index.library import Library
from kinodex.index.store.indexes import DURING_RUN, clean, refresh

LOOK_EVERY_S = 10.0
"""Seconds between two looks at the numbers of rows and fragments, which alone decide what is done."""
CLEAN_EVERY_S = 1800.0
"""Seconds between two deletions of old states, each of which reads the list of files of every state there is."""


@contextmanager
def refreshing_indexes(uri: str, look_every_s: float = LOOK_EVERY_S) -> Iterator[None]:
    """Refresh indexes within this block, so that shown videos are quick to search; an error is raised at its end."""
    over = threading.Event()

    def keep_fresh() -> None:
        tables, cleaned = Library.open(uri).tables, time.monotonic()
        tables.limit_caches()
        while not over.wait(look_every_s):
            refresh(tables, DURING_RUN)
            if time.monotonic() - cleaned > CLEAN_EVERY_S:
                clean(tables, DURING_RUN)
                cleaned = time.monotonic()

    with ThreadPoolExecutor(1, "refresh") as pool:
        refreshed = pool.submit(keep_fresh)
        try:
            yield
        finally:
            over.set()
    refreshed.result()
