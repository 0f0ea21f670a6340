"""Additions whose rows a model writes of the parts of videos: captions, titles, extracts.

Such an addition yields rounds of requests and makes rows of their replies. Where these come from is no concern of it:
an endpoint, which is kept full with requests of several videos together, a local model, the Batch API, or a dry run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol.request import Request
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import NO_COST, AddedRows, pending_videos
from kinodex.jobs.add.stage import Written
from kinodex.jobs.batch import Purse
from kinodex.jobs.costs import COSTS, Forecast, of_requests, spread
from kinodex.jobs.library import batched
from kinodex.jobs.model_loop import ModelLoop
from kinodex.jobs.models import open_model

if TYPE_CHECKING:
    from kinodex.agent.models.endpoint import Send
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role

BATCHES_AHEAD = 2
"""Batches of a video's parts that wait for the endpoint, so that the next is there when it ends the first."""
VIDEOS_AHEAD = 2
"""Long videos worked on together, so that the end of one is filled with another; more if they are short."""
SAMPLED_VIDEOS, SAMPLED_REQUESTS = 16, 8
"""Videos that a forecast goes through, and requests of each round of one that are made, spread evenly."""
UNSENT: Outcome[Any] = Outcome(None)
"""Of a request that was not sent, since those before it had cost too much."""


class NotInBatch(ModelRejected):
    """A request that no job has answered yet."""


@dataclass(frozen=True, slots=True)
class Round:
    """So many requests about parts of a video that do not wait for each other; made some at a time: they hold pictures.

    `make` gets their numbers.
    """

    count: int
    make: Callable[[Sequence[int]], Sequence[Request[Any]]]


Rounds = Generator[Round, list[Outcome[Any]], AddedRows]
"""Rounds of one video, each of which is sent the outcomes of its requests; the rows at their end."""
Answer = Callable[[Round], list[Outcome[Any]]]
"""Answers the requests of a round, in order."""


def run_rounds(rounds: Rounds, answer: Answer) -> AddedRows:
    """Have the requests of a video answered; it failed if those of the first round that has any were all refused."""
    usage, any_reply, calls, invalid = NO_COST, False, 0, 0
    try:
        asked = next(rounds)
        while True:
            outcomes = answer(asked)
            usage = sum((each.usage for each in outcomes), usage)
            calls += sum(each.calls for each in outcomes)
            invalid += sum(each.invalid for each in outcomes)
            any_reply = any_reply or any(each.reply is not None for each in outcomes)
            refused = [each.refused for each in outcomes if each.refused is not None]
            if refused and not any_reply:
                rounds.close()
                return AddedRows((), 0, usage=usage, failed=refused[-1], calls=calls, invalid=invalid)
            asked = rounds.send(outcomes)
    except StopIteration as end:
        made: AddedRows = end.value
        return replace(made, usage=usage, calls=calls, invalid=invalid)


def reasons(outcomes: Iterable[Outcome[Any]]) -> str:
    """Return the end of a sentence about parts without a reply: what requests were refused for, or replies lacked."""
    unanswered = [outcome for outcome in outcomes if outcome.reply is None]
    refused = [outcome.refused for outcome in unanswered if outcome.refused is not None]
    complaints = [outcome.complaint for outcome in unanswered if outcome.complaint]
    said = f"; requests refused: {len(refused)}, the last because {refused[-1]}" if refused else ""
    return said + (f"; the last reply could not be used: {complaints[-1]}" if complaints else "")


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
        """The costs of the videos that a run would work on."""
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
        """The costs of these videos: what some cost that are gone through as in a run, by the seconds of all.

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


# Videos in progress together: enough to fill an endpoint, and no more, since their requests hold pictures.


def videos_at_once(at_once: int) -> int:
    """The largest number of videos in flight together: if each has one segment."""
    return VIDEOS_AHEAD * at_once


def most_weight(at_once: int) -> int:
    """Return the most that the videos in progress together may weigh."""
    return VIDEOS_AHEAD * BATCHES_AHEAD * at_once


def weight_of(parts: int, at_once: int) -> int:
    """The weight of a video with this number of `parts`; only a few of them wait for the endpoint at a time."""
    return min(max(parts, BATCHES_AHEAD), BATCHES_AHEAD * at_once)


# A model behind an endpoint that is asked from several threads.


@contextmanager
def open_served(
    role: Role, send: Send | None = None, stop_at_cost: float | None = None, *, keep: bool = True
) -> Iterator[Served]:
    """Open the model of a role in a loop of its own; requests in flight at the end are cancelled.

    Unless `keep`, the cache of replies is read and not added to.
    """
    with ModelLoop() as loop:
        yield Served(loop, loop.open(open_model(role, send, keep=keep)), Purse(stop_at_cost))


@dataclass(frozen=True, slots=True)
class Served:
    """A model with the loop that it is asked in, and what it may cost."""

    loop: ModelLoop
    model: OpenAIModel
    purse: Purse

    def answer(self, asked: Round) -> list[Outcome[Any]]:
        """Answer a round, until the endpoint has rejected a request and replied to none.

        Raises CostReached if one was not sent for its cost, once those in flight have ended.
        """
        outcomes: list[Outcome[Any]] = []
        waiting: deque[Future[list[Outcome[Any]]]] = deque()
        try:
            for numbers in batched(range(asked.count), self.model.role.at_once):
                waiting.append(self.loop.submit(self._ask_all(asked.make(numbers))))
                while len(waiting) == BATCHES_AHEAD or (waiting and _is_refused(outcomes)):
                    outcomes += waiting.popleft().result()
                if _is_refused(outcomes) or self.purse.is_empty:
                    break
            while waiting:
                outcomes += waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
        if self.purse.is_empty and (len(outcomes) < asked.count or UNSENT in outcomes):
            raise self.purse.reached()
        return outcomes + [Outcome(None)] * (asked.count - len(outcomes))

    async def _ask_all(self, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
        """Ask all of some requests at once, but for those that would begin when too much is spent."""
        from kinodex.agent.limits.parallel_calls import gather_all

        return await gather_all([self._ask(request) for request in requests])

    async def _ask(self, request: Request[Any]) -> Outcome[Any]:
        if self.purse.is_empty:
            return UNSENT
        outcome = await ask_checked(self.model, request)
        self.purse.spent += outcome.usage.cost
        return outcome


def _is_refused(outcomes: Iterable[Outcome[Any]]) -> bool:
    refused = (each.refused is not None and not isinstance(each.refused, NotInBatch) for each in outcomes)
    return any(refused) and all(each.reply is None for each in outcomes)
