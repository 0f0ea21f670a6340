"""Money that questions cost in a day of UTC, on disk: a restart does not forget it, and servers of one folder share it.

A file a day, one amount a line.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path


def spend(folder: Path, amount: float, now: datetime | None = None) -> None:
    """Add what one call of a model has cost."""
    place = _file(folder, now)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="ascii") as file:
        file.write(f"{amount!r}\n")


def spent_today(folder: Path, now: datetime | None = None) -> float:
    """Add up all amounts of the day; the last line may be cut by a crash."""
    place = _file(folder, now)
    lines = place.read_text(encoding="ascii").split("\n") if place.is_file() else [""]
    return sum(float(line) for line in lines[:-1])


def until_tomorrow_s(now: datetime | None = None) -> float:
    """Seconds until the next day of UTC begins."""
    here = now or datetime.now(UTC)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - here).total_seconds()


def _file(folder: Path, now: datetime | None) -> Path:
    return folder / "spent" / f"{(now or datetime.now(UTC)):%Y-%m-%d}"
