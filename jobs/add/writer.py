"""Additions whose rows a model writes of the parts of videos: captions, titles, extracts.

Such an addition yields rounds of requests and makes rows of their replies. Where these come from is no concern of it:
an endpoint, which is kept full with requests of several videos together, a local model, the Batch API, or a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kinodex.agent.attempts import Outcome
from kinodex.agent.protocol.request import Request
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.endpoint import most_weight, open_served, videos_at_once, weight_of
from kinodex.jobs.add.rounds import Answer, Round, Rounds, run_rounds
from kinodex.jobs.add.run import AddedRows, pending_videos
from kinodex.jobs.add.stage import Written
from kinodex.jobs.costs import COSTS, Forecast, of_requests, spread
from kinodex.jobs.library import batched

SAMPLED_VIDEOS, SAMPLED_REQUESTS = 16, 8
"""Videos that a forecast goes through, and requests of each round of one that are made, spread evenly."""

W = TypeVar("W", bound=Written)


@dataclass(frozen=True)
class Writer(Generic[W]):
    """Work of a stage whose rows a model writes: what it asks about each video, and what it makes of the replies.

    No model is loaded for it.
    """

    stage: W
    library: Library

    @classmethod
    @contextmanager
    def open(cls, stage: W, library: Library) -> Iterator[Writing]:
        """Open the model of a stage: here, where parts are worked on one after the other, or behind an endpoint."""
        writer = cls(stage, library)
        if stage.base_url is None:
            replies = writer.load()
            yield Writing(stage, writer, lambda asked: _answer_here(replies, asked, stage.at_once))
            return
        # The loop of the model ends first, so that a failure does not wait for requests in flight.
        with (
            ThreadPoolExecutor(videos_at_once(stage.at_once)) as pool,
            open_served(stage.role, stage.send, stage.stop_at_cost) as served,
        ):
            yield Writing(stage, writer, served.answer, pool)

    @classmethod
    def forecast(cls, stage: W, library: Library, video_ids: Sequence[str] | None) -> Forecast:
        """Return the costs of the videos that a run would work on."""
        writer = cls(stage, library)
        return writer.costs(pending_videos(library, stage.key, video_ids, writer.again(), stage.name))

    def prepare(self) -> None:
        """Prepare the library's tables: there is nothing to do."""

    def again(self) -> Collection[str]:
        """Ids of the videos that have rows, and get them again: none."""
        return ()

    def parts_of(self, video: VideoRow) -> int:
        """About how many requests a video makes."""
        return video.segments

    def rounds(self, video: VideoRow) -> Rounds:
        """Ask about the parts of one video that lack rows, and make these."""
        raise NotImplementedError

    def write(self, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos."""
        raise NotImplementedError

    def load(self) -> Callable[[Sequence[Request[Any]]], list[Outcome[Any]]]:
        """Load the local model, and give the function by which it replies to some requests."""
        raise NotImplementedError

    def costs(self, videos: Sequence[VideoRow]) -> Forecast:
        """Return the costs of these videos: what some cost that are gone through as in a run, by the seconds of all.

        Some of the requests of each round are made, and example replies take the place of the others.
        """
        some, sums, rows = spread(videos, SAMPLED_VIDEOS), dict.fromkeys(COSTS, 0.0), 0

        def answer(asked: Round) -> list[Outcome[Any]]:
            numbers = spread(range(asked.count), SAMPLED_REQUESTS)
            requests = asked.make(numbers) if numbers else ()
            of_some, share = of_requests("", requests, self.stage.role), asked.count / max(1, len(requests))
            for name in COSTS:
                sums[name] += share * getattr(of_some, name)
            replies = [request.Reply.model_validate(request.example()) for request in requests]
            return [Outcome(reply) for reply in replies[:1] * asked.count]

        for video in some:
            rows += len(run_rounds(self.rounds(video), answer).rows)
        gone_through_s = sum(row.duration_s for row in some)
        times = sum(row.duration_s for row in videos) / gone_through_s if gone_through_s else 1.0
        costs = {name: times * each for name, each in sums.items()}
        costs["cost"] *= self.stage.price_share
        return Forecast(self.stage.name, round(times * rows), **costs, basis="library")


@dataclass(frozen=True, slots=True)
class Writing:
    """Addition of rows that a model writes: see `kinodex.jobs.add.run.Addition` and `ConcurrentAddition`."""

    stage: Written
    writer: Writer[Any]
    answer: Answer
    pool: Executor | None = None

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def model(self) -> str:
        return self.stage.key

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.stage.kept

    @property
    def at_once(self) -> int:
        return most_weight(self.stage.at_once) if self.pool else 1

    def weight(self, video: VideoRow) -> int:
        return weight_of(self.writer.parts_of(video), self.stage.at_once) if self.pool else 1

    def prepare(self) -> None:
        self.writer.prepare()

    def again(self) -> Collection[str]:
        return self.writer.again()

    def rows_of(self, video: VideoRow) -> AddedRows:
        return run_rounds(self.writer.rounds(video), self.answer)

    def write(self, rows: Mapping[str, Any]) -> None:
        self.writer.write(rows)


def _answer_here(
    replies: Callable[[Sequence[Request[Any]]], list[Outcome[Any]]], asked: Round, at_once: int
) -> list[Outcome[Any]]:
    return [each for numbers in batched(range(asked.count), at_once) for each in replies(asked.make(numbers))]
