"""A process is known by more than its number."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from index.store.process_identity import is_known, is_running, this_process


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_are_known_by_more_than_their_number():
    me = this_process()
    assert is_known(me)
    assert is_running(me)
    assert not is_running(replace(me, start=me.start - 1))  # an earlier process of this number
    assert not is_known(replace(me, boot="before the machine was started anew"))
    assert not is_known(replace(me, host="far-away"))
    assert not is_known(replace(me, boot=""))
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(replace(me, pid=child.pid))
    assert not is_running(replace(me, pid=child.pid))
