"""Run an iterator a few items ahead of its reader, in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """Yield the same items in the same order, up to `depth` of them made before they are needed.

    `items` runs in one worker thread. An error in it is raised here, in place of the item that failed.
    When the reader stops early, no more items are made, and `items` is closed before this returns.
    """
    pool = ThreadPoolExecutor(max_workers=1)
    pending: deque[Future[Item | None]] = deque(pool.submit(next, items, None) for _ in range(depth))
    try:
        while (item := pending.popleft().result()) is not None:
            pending.append(pool.submit(next, items, None))
            yield item
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        items.close()
