"""A stage without a model whose writers die on some videos; light to import, since every actor does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from kinodex.agent.errors import ModelUnreachable
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.detections import NewDetection
from kinodex.jobs.add.run import AddedRows
from kinodex.pipeline.errors import WrongModel


@dataclass(frozen=True)
class Dying:
    """As many rows as the video's number says; some videos kill the process that writes them, always or once."""

    marks: str
    always: str = ""
    once: str = ""
    wrong_model: bool = False
    unheard: tuple[str, ...] = ()
    """Videos to which an endpoint gives no reply."""
    name: str = "detections"
    model: str = "dying"
    runs_on: str = "cpu"
    library: Library | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    @contextmanager
    def open(self, library: Library) -> Iterator[Self]:
        yield replace(self, library=library)

    def share(self, processes: int) -> Self:
        return self

    def prepare(self) -> None:
        pass

    def again(self) -> tuple[str, ...]:
        return ()

    def rows_of(self, video: VideoRow) -> AddedRows:
        if self.wrong_model:
            raise WrongModel("this model is for something else")
        if video.video_id in self.unheard:
            raise ModelUnreachable("nobody answers")
        rows = [NewDetection(n, float(n), "thing", 0.5, (0, 0, 1, 1), n) for n in range(int(video.video_id))]
        return AddedRows(rows, len(rows))

    def write(self, rows: Mapping[str, Any]) -> None:
        assert self.library is not None
        self.library.additions.add_detections(rows, self.model)
        mark = Path(self.marks) / f"{os.getpid()}"
        is_first = not list(Path(self.marks).iterdir())
        mark.touch()
        if self.always in rows or (self.once in rows and is_first):
            os.kill(os.getpid(), signal.SIGKILL)
