"""Progress of an ingest, shown to those who watch it a few times a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from jobs.ingest.messages import Executor
from jobs.ingest.outcomes import Progress, Tally, Watch, utilisation
from jobs.ingest.work_queue import WorkQueue

SHOW_EVERY_S = 0.25


class ProgressReports:
    """Shows the progress of one run to its watches. `seconds` by stage, and the title that is read, are filled in."""

    def __init__(
        self,
        watches: Sequence[Watch],
        executor: Executor,
        work: WorkQueue,
        tally: Tally,
        clock: Callable[[], float],
    ) -> None:
        self._watches, self._executor, self._work, self._tally, self._clock = watches, executor, work, tally, clock
        self._began = self._shown = clock()
        self.seconds: Counter[str] = Counter()
        self.current = ""

    def show_if_due(self, running: int, retried: int) -> None:
        """Show the progress, unless that was done a moment ago: counting asks every worker."""
        if self._clock() - self._shown >= SHOW_EVERY_S:
            self.show(running, retried)

    def show(self, running: int, retried: int) -> None:
        """Show the progress with so many tasks that run and so many that were retried."""
        self._shown = self._clock()
        progress = self._progress(running, retried)
        for watch in self._watches:
            watch(progress)

    def _progress(self, running: int, retried: int) -> Progress:
        work, tally, executor = self._work, self._tally, self._executor
        frames, video_s = executor.counts()  # on Ray, as of a moment ago
        busy = utilisation(self.seconds, executor.readers, executor.embedders, self._clock() - self._began)
        return Progress(
            done=tally.done,
            total=work.total,
            failed=tally.states["failed"],
            frames=max(frames, tally.frames),
            video_s=max(video_s, tally.video_s),
            bytes_done=tally.bytes_done,
            bytes_total=work.bytes_total,
            busy=busy,
            bottleneck=max(busy, key=lambda stage: busy[stage]) if any(busy.values()) else None,
            current=self.current,
            states=dict(tally.states),
            failures=dict(tally.failures),
            seconds=dict(self.seconds),
            queues={"identify": work.bundles, "read": work.reads, "running": running},
            workers={"reader": executor.readers, "embedder": executor.embedders},
            retried=retried,
        )
