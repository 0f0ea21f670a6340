"""Record the files whose functions run in a Python child of a walk, from its start (see walks.py beside it)."""

import atexit
import os
import sys
import threading
from pathlib import Path

if log := os.environ.get("KINODEX_WALK"):
    from tests.support.house.walks import Recorder

    recorder = Recorder()
    atexit.register(recorder.write, Path(log))
    threading.setprofile(recorder.see)
    sys.setprofile(recorder.see)
