"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kinodex.jobs.errors import UsageError

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
