"""Child processes that never get an interrupt."""

from __future__ import annotations

import signal
import subprocess
import sys

from kinodex.jobs.child_processes import without_interrupts

BLOCKED = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


def started() -> str:
    return subprocess.run([sys.executable, "-S", "-c", BLOCKED], capture_output=True, text=True, check=True).stdout


def test_a_process_started_in_the_block_gets_no_interrupt_and_a_later_one_does() -> None:
    with without_interrupts():
        assert started() == "True\n"
    assert started() == "False\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
