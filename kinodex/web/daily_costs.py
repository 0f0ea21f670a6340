"""Money that questions cost in a day of UTC, on disk: a restart does not forget it, and servers of one folder share it.

There is a file for each day, with an amount on each line.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from kinodex.jobs.errors import UsageError


def spend(folder: Path, amount: float, now: datetime | None = None) -> None:
    """Add what one call of a model has cost. A line that a crash cut is taken away first: no other may continue it."""
    import fcntl  # only Unix has it

    place = _file(folder, now)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another server may be writing its own line
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(b"%r\n" % amount)


def spent_today(folder: Path, now: datetime | None = None) -> float:
    """Add up all amounts of the day; the last line may be cut by a crash. Raises UsageError for a damaged file."""
    place = _file(folder, now)
    lines = place.read_text(encoding="ascii", errors="replace").split("\n") if place.is_file() else [""]
    try:
        return sum(float(line) for line in lines[:-1])
    except ValueError as error:
        raise UsageError(
            f"cannot read what today's questions have cost, {place}: {error}; correct the line, or take it away"
        ) from error


def until_tomorrow_s(now: datetime | None = None) -> float:
    here = now or datetime.now(UTC)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - here).total_seconds()


def _file(folder: Path, now: datetime | None) -> Path:
    return folder / "spent" / f"{(now or datetime.now(UTC)):%Y-%m-%d}"
