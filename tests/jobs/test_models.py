"""Models by name with all that replies depend on; coroutines in plain functions, which an interrupt ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import pytest

from kinodex.jobs.models import REPLY_SETTINGS, ModelChoice, describe_models, run_now

SETTINGS = {
    "temperature": "0.5",
    "max_tokens": "99",
    "reasoning": "false",
    "context_tokens": "9999",
    "seed": "4",
    "extra": '{reasoning_effort = "low"}',
    "image_side_px": "32",
    "detail": '"low"',
    "images": "3",
}


def test_a_model_is_another_where_a_setting_is_on_which_replies_depend(tmp_path: Path) -> None:
    assert SETTINGS.keys() == REPLY_SETTINGS
    file, plain = tmp_path / "roles.toml", '[default]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    for name, value in SETTINGS.items():
        file.write_text(f"{plain}{name} = {value}\n")
        assert f", {name}=" in describe_models(ModelChoice(roles_file=file))["default"]
    file.write_text(plain + "timeout_s = 7\n")
    assert describe_models(ModelChoice(roles_file=file)) == {"default": "m at http://127.0.0.1:9/v1"}


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
