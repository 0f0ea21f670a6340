"""Workers of long runs: Ray actors, here or on a cluster, and processes of this machine.

A lost worker is replaced. What it had in progress is done again by others, the last times by itself, so that a piece of
work that ends workers takes no other with it; it is set apart once it has ended `TRIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from kinodex.errors import KinodexError

TRIES = 3
"""Workers that a piece of work may end before it is taken for the cause."""
LOST = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?)"


class Worker(Protocol):
    """A worker that does pieces of work side by side."""

    @property
    def is_lost(self) -> bool:
        """True once it has ended, or was killed because it is out of reach."""

    @property
    def load(self) -> int:
        """Number of pieces of work that it has in progress."""


W = TypeVar("W", bound=Worker)


class Crew(Generic[W]):
    """Workers, each by its number; in the place of a lost one another is started, under a number of its own."""

    def __init__(self, start: Callable[[], W]) -> None:
        self._start = start
        self.started: list[W] = []
        """All that there were, the lost ones included."""

    @property
    def there(self) -> dict[int, W]:
        """Those that are not lost."""
        return {number: each for number, each in enumerate(self.started) if not each.is_lost}

    def grow(self, size: int) -> range:
        """Start workers until this many are there; returns the numbers of the new ones."""
        first, lacking = len(self.started), size - len(self.there)
        for _ in range(lacking):
            self.started.append(self._start())
        return range(first, len(self.started))

    def lightest(self, size: int) -> W:
        """Return the worker of `size` with the least in progress, once lost ones are replaced."""
        self.grow(size)
        return min(self.there.values(), key=lambda each: each.load)


class Actor:
    """A worker as a Ray actor. What Ray would do again by itself is left to us: it knows nothing of rows and leases."""

    def __init__(self, kind: type, *arguments: Any, **options: Any) -> None:
        made = actor_of(kind).options(max_restarts=0, max_task_retries=0, **options)
        self.handle = made.remote(*arguments)
        self.is_lost = False
        self.calls: set[Future[Any]] = set()
        """Those whose end nobody has taken."""

    @property
    def load(self) -> int:
        return len(self.calls)

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        """Begin a call; `result` takes its end."""
        call: Future[Any] = getattr(self.handle, method).remote(*arguments).future()
        self.calls.add(call)
        return call

    def result(self, call: Future[Any]) -> Any:
        """Result of a call that has ended; None if the actor was lost. Raises the error of ours that ended its work."""
        import ray

        self.calls.discard(call)
        try:
            return call.result()
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayError:
            self.end()  # it may only be out of reach; so it certainly writes nothing more
            return None

    def end(self) -> None:
        """Kill the actor."""
        import ray

        self.is_lost = True
        ray.kill(self.handle)


def actor_of(kind: type) -> Any:
    """Make a class one whose instances are Ray actors."""
    import ray

    return ray.remote(kind)


def total_resources() -> dict[str, float]:
    """CPUs, GPUs and other resources of all nodes that are in the cluster now, busy or not."""
    from ray import cluster_resources

    untyped: Any = cluster_resources
    found: dict[str, float] = untyped()
    return found


def reraise(error: Exception) -> NoReturn:
    """Raise the error that ended a task: the one of ours that it carries, else the task's as it is."""
    cause = getattr(error, "cause", None) or error.__cause__
    if isinstance(cause, KinodexError):
        raise cause from error
    raise error
