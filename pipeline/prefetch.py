"""Run an iterator a few items ahead of its reader, in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """The same items in the same order, up to `depth` of them made before they are asked for.

    `items` runs in one worker thread. What it raises is raised here, at the item that it stands for.
    When the reader stops early, nothing more is asked of `items` and it is closed before this returns.
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
