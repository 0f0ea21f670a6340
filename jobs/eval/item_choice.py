"""The items that a run asks: of a part of the benchmark, and drawn at random."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kinodex.index.named_files import read_text
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import Item

WHOLE = "all"
MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Subset:
    """Choice of questions: in one of the named groups of every breakdown of `only`, and among `ids` if not None."""

    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ids: frozenset[str] | None = None

    def __str__(self) -> str:
        """Describe the subset in words, equal for equal subsets; ids by their number and digest."""
        words = [f"{breakdown} = {' or '.join(sorted(names))}" for breakdown, names in sorted(self.only.items())]
        if self.ids is not None:
            digest = hashlib.sha256("\n".join(sorted(self.ids)).encode()).hexdigest()[:12]
            words.append(f"{len(self.ids):,} ids of sha256 {digest}")
        return "; ".join(words) or WHOLE


def parse_subset(only: Sequence[str], ids: Path | None) -> Subset:
    """Parse GROUP=VALUE options and a file with one id a line; raise `UsageError` for anything else."""
    groups: dict[str, frozenset[str]] = {}
    for word in only:
        breakdown, equals, name = word.partition("=")
        if not (equals and breakdown and name):
            raise UsageError(f"got --only {word!r}; give GROUP=VALUE, such as duration=long")
        groups[breakdown] = groups.get(breakdown, frozenset()) | {name}
    return Subset(groups, None if ids is None else _read_ids(ids))


def select_items(items: Sequence[Item], subset: Subset) -> tuple[Item, ...]:
    """Select the items of a subset, in the order given; raise `UsageError` for what no question has."""
    for breakdown, names in subset.only.items():
        known = {each: None for item in items for each in item.groups}
        if breakdown not in known:
            there = f"it is one of {some(known)}" if known else "these questions have no groups"
            raise UsageError(f"got --only {breakdown}=...; {there}")
        groups = sorted({each for item in items for each in item.groups.get(breakdown, ())})
        if lacking := sorted(names - set(groups)):
            raise UsageError(f"got --only {breakdown}={lacking[0]}; {breakdown} is one of {some(groups)}")
    unknown = sorted((subset.ids or frozenset()) - {item.item_id for item in items})
    if unknown:
        there = some([item.item_id for item in items])
        raise UsageError(f"--ids has {len(unknown):,} that no question has: {some(unknown)}; there are {there}")
    found = tuple(
        item
        for item in items
        if (subset.ids is None or item.item_id in subset.ids)
        and all(names & set(item.groups.get(breakdown, ())) for breakdown, names in subset.only.items())
    )
    if not found:
        raise UsageError(f"no question is in the part {subset}; give fewer of --only and --ids together")
    return found


def draw_items(items: Sequence[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """Draw at most `limit` items by the seed and the ids alone, and keep their order; None keeps all.

    The categories of the first breakdown keep their shares (Sainte-Lague). In each category the videos with the fewest
    drawn items come first.
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


def _read_ids(path: Path) -> frozenset[str]:
    try:
        lines = read_text(path, "utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give a text file with a question's id on each line") from error
    ids = frozenset(filter(None, map(str.strip, lines)))
    if not ids:
        raise UsageError(f"{path} names no question; give a text file with a question's id on each line")
    return ids


def some(names: Collection[str], most: int = MOST_NAMED) -> str:
    """Return the first names of a list, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def _next(waiting: list[tuple[int, bytes, int]], items: Sequence[Item], by_video: Counter[str]) -> int:
    """Pop the item whose video has the fewest drawn items; of several, the one with the lowest hash."""
    while True:
        count, drawn, number = waiting[0]
        # A count in the heap may be older than the last draws from this video; counts only grow.
        now = by_video[items[number].video]
        if now == count:
            heapq.heappop(waiting)
            return number
        heapq.heapreplace(waiting, (now, drawn, number))
