"""Run work in a fresh process, which may hang or die there."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Lost(Exception):
    """A process that returned no result: it ended by itself, or took too long."""


def run_alone_within(limit_s: float | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a fresh process, which nothing before it helps or hinders; raises its errors, and Lost."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, work, args, kwargs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            raise Lost(f"it took more than {limit_s:g} s")
        result: T | Exception = ours.recv()
    except EOFError as error:
        process.join()
        raise Lost(f"its process ended with status {process.exitcode}") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(result, Exception):
        raise result
    return result


def _send_result(pipe: Connection, work: Callable[..., object], args: Any, kwargs: Any) -> None:
    try:
        pipe.send(work(*args, **kwargs))
    except Exception as error:  # whatever it is, it is raised where the result is waited for
        pipe.send(error)
