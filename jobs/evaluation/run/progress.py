"""What a person sees while questions are asked: how many are done of each contender, what it cost, the time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from jobs.console.ingest_progress import LINE_EVERY_S, duration
from jobs.evaluation.run.results import SampleResult

Tell = Callable[[SampleResult], None]


@dataclass(slots=True)
class Tally:
    """Questions by contender: `total`, and `done` with those of earlier runs; the rest is of this run alone."""

    total: Mapping[str, int]
    done: Counter[str]
    fresh: int = 0
    errors: int = 0
    cost: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def count(self, record: SampleResult) -> None:
        self.done[record.contender] += 1
        self.fresh += 1
        self.errors += bool(record.error)
        self.cost += record.ledger.cost

    @property
    def complete(self) -> bool:
        return self.done.total() == sum(self.total.values())

    def told(self) -> str:
        """All in one line."""
        done, total = self.done.total(), sum(self.total.values())
        under_way = [name for name in self.total if 0 < self.done[name] < self.total[name]]
        counts = [f"{done:,} of {total:,} answers", *(f"{name} {self.done[name]:,}" for name in under_way)]
        return ", ".join([*counts, *filter(None, [self.aside()])])

    def aside(self) -> str:
        """What this run cost, what got no answer, and the time left."""
        parts = [f"cost {self.cost:.2f}"] if self.cost else []
        if self.errors:
            parts.append(f"{self.errors:,} without an answer")
        if self.fresh and not self.complete:
            left = sum(self.total.values()) - self.done.total()
            parts.append(f"{duration((time.monotonic() - self.began) * left / self.fresh)} left")
        return ", ".join(parts)


@contextmanager
def asking_progress(console: Console, tally: Tally, every_s: float = LINE_EVERY_S) -> Iterator[Tell]:
    """Give a function that counts and shows each record: bars on a terminal, else a line every `every_s` seconds."""
    with _bars(console, tally) if console.is_terminal else _lines(console, tally, every_s) as tell:
        yield tell


@contextmanager
def _bars(console: Console, tally: Tally) -> Iterator[Tell]:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=16), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), TextColumn("{task.fields[text]}"), console=console, transient=True) as bar:
        rows = {
            name: bar.add_task(escape(name), total=total, completed=tally.done[name], start=False, text="")
            for name, total in tally.total.items()
        }
        whole = bar.add_task("all", total=sum(tally.total.values()), completed=tally.done.total(), text="")

        def tell(record: SampleResult) -> None:
            tally.count(record)
            bar.start_task(rows[record.contender])
            bar.update(rows[record.contender], completed=tally.done[record.contender])
            bar.update(whole, completed=tally.done.total(), text=tally.aside())

        yield tell


@contextmanager
def _lines(console: Console, tally: Tally, every_s: float) -> Iterator[Tell]:
    shown = tally.began

    def tell(record: SampleResult) -> None:
        nonlocal shown
        tally.count(record)
        now = time.monotonic()
        if now - shown >= every_s:
            shown = now
            console.print(tally.told(), soft_wrap=True, markup=False, highlight=False)

    yield tell
