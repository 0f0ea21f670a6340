"""A part of a benchmark as papers report it: by the groups that a question counts in, or by a list of ids."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.benchmarks.item import Item
from jobs.errors import UsageError

WHOLE = "all"
MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Part:
    """Questions in one of the named groups of every breakdown of `only`, and among `ids` where those are given."""

    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ids: frozenset[str] | None = None

    def __str__(self) -> str:
        """In words, the same for the same part; ids by their number and digest."""
        told = [f"{breakdown} = {' or '.join(sorted(names))}" for breakdown, names in sorted(self.only.items())]
        if self.ids is not None:
            digest = hashlib.sha256("\n".join(sorted(self.ids)).encode()).hexdigest()[:12]
            told.append(f"{len(self.ids):,} ids of sha256 {digest}")
        return "; ".join(told) or WHOLE


def wanted_part(only: Sequence[str], ids: Path | None) -> Part:
    """The part that GROUP=VALUE words and a file with an id a line name; raises `UsageError` for anything else."""
    groups: dict[str, frozenset[str]] = {}
    for word in only:
        breakdown, equals, name = word.partition("=")
        if not (equals and breakdown and name):
            raise UsageError(f"got --only {word!r}; give GROUP=VALUE, such as duration=long")
        groups[breakdown] = groups.get(breakdown, frozenset()) | {name}
    return Part(groups, None if ids is None else _read_ids(ids))


def of_part(items: Sequence[Item], part: Part) -> tuple[Item, ...]:
    """The questions of a part, in the order given.

    Raises `UsageError` for a breakdown, group or id that no question has, and where no question is left.
    """
    for breakdown, names in part.only.items():
        _check_groups(items, breakdown, names)
    unknown = sorted((part.ids or frozenset()) - {item.item_id for item in items})
    if unknown:
        known = _named([item.item_id for item in items])
        raise UsageError(f"--ids has {len(unknown):,} that no question has: {_named(unknown)}; there are {known}")
    found = tuple(item for item in items if _is_in(item, part))
    if not found:
        raise UsageError(f"no question is in the part {part}; give fewer of --only and --ids together")
    return found


def _is_in(item: Item, part: Part) -> bool:
    grouped = all(names & set(item.groups.get(breakdown, ())) for breakdown, names in part.only.items())
    return grouped and (part.ids is None or item.item_id in part.ids)


def _check_groups(items: Sequence[Item], breakdown: str, names: Collection[str]) -> None:
    known = {each: None for item in items for each in item.groups}
    if breakdown not in known:
        there = f"it is one of {_named(known)}" if known else "these questions have no groups"
        raise UsageError(f"got --only {breakdown}=...; {there}")
    groups = sorted({each for item in items for each in item.groups.get(breakdown, ())})
    unknown = [name for name in sorted(names) if name not in groups]
    if unknown:
        raise UsageError(f"got --only {breakdown}={unknown[0]}; {breakdown} is one of {_named(groups)}")


def _read_ids(path: Path) -> frozenset[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give a text file with a question's id on each line") from error
    ids = frozenset(filter(None, map(str.strip, lines)))
    if not ids:
        raise UsageError(f"{path} names no question; give a text file with a question's id on each line")
    return ids


def _named(names: Collection[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(list(names)[:MOST_NAMED]) + more
