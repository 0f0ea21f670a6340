"""Coroutines in plain functions: an interrupt ends them, and waits for their end."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from kinodex.jobs.models import run_now


def test_an_interrupt_where_a_loop_runs_already_cancels_the_call_and_waits_for_its_end() -> None:
    """A notebook's stop button: the interrupt reaches the thread that waits, not the one that asks."""
    ends = list[str]()

    async def question() -> None:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(60)
            ends.append("went on")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            run_now(question())

    loop = asyncio.new_event_loop()  # as in a kernel the interrupt goes to the code that runs
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    try:
        loop.run_until_complete(cell())
    finally:
        signal.signal(signal.SIGINT, before)
        loop.close()
    assert ends == ["cancelled"]
