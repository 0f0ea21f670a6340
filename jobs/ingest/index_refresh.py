"""Keep the indexes and files of a library in order beside a run that writes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from index.library import Library
from index.store.indexes import DURING_RUN, delete_old_states, refresh

LOOK_EVERY_S = 10.0
"""Seconds between two looks at the numbers of rows and fragments, which alone decide what is done."""
CLEAN_EVERY_S = 1800.0
"""Seconds between two deletions of old states, each of which reads the list of files of every state there is."""


@contextmanager
def refreshing_indexes(uri: str, look_every_s: float = LOOK_EVERY_S) -> Iterator[None]:
    """Refresh indexes within this block, so that videos that are shown already are quick to search.

    An error there is raised at the end of the run: it loses no row.
    """
    over = threading.Event()

    def keep_fresh() -> None:
        tables, cleaned = Library.open(uri).tables, time.monotonic()
        tables.limit_caches()
        while not over.wait(look_every_s):
            refresh(tables, DURING_RUN)
            if time.monotonic() - cleaned > CLEAN_EVERY_S:
                delete_old_states(tables, DURING_RUN)
                cleaned = time.monotonic()

    with ThreadPoolExecutor(1, "refresh") as pool:
        refreshed = pool.submit(keep_fresh)
        try:
            yield
        finally:
            over.set()
    refreshed.result()
