"""A part of a benchmark that stands for all of it."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence

from jobs.benchmarks.item import Item


def chosen(items: Sequence[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """At most `limit` of the questions, in the order given; None takes all.

    The categories of the first breakdown keep their shares (Sainte-Lague), and in each the videos that gave least
    so far come first. The draw hangs on seed and ids alone, so that anyone can make it again.
    """
    if limit is None or limit >= len(items):
        return tuple(items)
    waiting: dict[tuple[str, ...], list[tuple[int, bytes, int]]] = defaultdict(list)
    for number, item in enumerate(items):
        drawn = hashlib.sha256(f"{seed} {item.item_id}".encode()).digest()
        heapq.heappush(waiting[next(iter(item.groups.values()), ())], (0, drawn, number))
    size = {category: len(held) for category, held in waiting.items()}
    taken = dict.fromkeys(waiting, 0)
    by_video: Counter[str] = Counter()
    numbers = []
    for _ in range(limit):
        category = min(filter(waiting.get, waiting), key=lambda each: ((2 * taken[each] + 1) / size[each], each))
        number = _next(waiting[category], items, by_video)
        taken[category] += 1
        by_video[items[number].video] += 1
        numbers.append(number)
    return tuple(items[number] for number in sorted(numbers))


def _next(waiting: list[tuple[int, bytes, int]], items: Sequence[Item], by_video: Counter[str]) -> int:
    """Takes from the heap the question whose video gave least, the earliest drawn of them."""
    while True:
        given, drawn, number = waiting[0]
        # A count in the heap may be from before other questions of the video were taken; counts only grow.
        now = by_video[items[number].video]
        if now == given:
            heapq.heappop(waiting)
            return number
        heapq.heapreplace(waiting, (now, drawn, number))
