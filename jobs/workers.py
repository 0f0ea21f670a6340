"""Workers of long runs: Ray actors, here or on a cluster, and processes of this machine.

A lost worker is replaced. What it had in progress is done again by others, the last times by itself, so that a piece of
work that ends workers takes no other with it; it is set apart once it has ended `TRIES`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from kinodex.errors import KinodexError
from kinodex.jobs.errors import UsageError

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
        """Start workers until so many are there; returns the numbers of the new ones."""
        first, lacking = len(self.started), size - len(self.there)
        for _ in range(lacking):
            self.started.append(self._start())
        return range(first, len(self.started))

    def lightest(self, size: int) -> W:
        """The worker of `size` with the least in progress, once lost ones are replaced."""
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


# The connection to a Ray cluster.

CONNECT_S = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to Ray at `address`, else at RAY_ADDRESS, as in a Ray job; else start it here until the end.

    Raises UsageError if there is no cluster at the address.
    """
    import ray

    if ray.is_initialized():
        yield
        return
    with restored_process():
        _init(address or os.environ.get("RAY_ADDRESS") or "local")
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def restored_process() -> Iterator[None]:
    """Put back at the end what Ray changes in this process: variables and the SIGTERM handler."""
    before, handler = _ray_variables(), signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        for name in _ray_variables().keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _ray_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_") or name == "PYTHONBREAKPOINT"}


def _init(address: str) -> None:
    import ray
    from ray.job_config import JobConfig

    try:
        host, _, port = address.rpartition("/")[2].rpartition(":")
        if host and port.isdigit():  # to one that accepts no connections Ray would try for minutes
            socket.create_connection((host, int(port)), CONNECT_S).close()
        with warnings.catch_warnings():
            # Lance warns of forks; the processes that Ray starts here run another program at once.
            warnings.filterwarnings("ignore", message="lance is not fork-safe", category=UserWarning)
            ray.init(
                address=address,
                # As a client's job: else the working directory is the first place where workers look for imports.
                job_config=JobConfig(_client_job=True),
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False if address == "local" else None,
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UsageError(
            f"cannot reach Ray at {address}: {reason}; give the address of a running cluster, "
            "or --ray without one to start Ray here"
        ) from error
