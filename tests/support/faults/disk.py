"""The disk layer: `shim.c` beside this file, compiled, loaded before all else, and armed from Python."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir

KINDS = {"write": 1, "rename": 2, "list": 4, "read": 8}
EVERY_KIND = sum(KINDS.values())
ONCE, LASTING, KILL, MEMORY = range(4)
MEMORY_STEPS, STEP_BYTES = 24, 8_000_000
"""The process may take so much more memory than it has, times the number of the step."""


@dataclass(frozen=True)
class Fault:
    """A call of these kinds that fails once, from then on, or ends the process."""

    kinds: int
    how: int
    error: int = errno.EIO


NONE = Fault(EVERY_KIND, ONCE)
"""Of which no call fails: all are counted."""
FAULTS = {
    **{f"{name} fails": Fault(kind, ONCE) for name, kind in KINDS.items()},
    "disk full": Fault(KINDS["write"], LASTING, errno.ENOSPC),
    "killed": Fault(KINDS["write"] | KINDS["rename"], KILL),
    "memory short": Fault(0, MEMORY),
}


def shim() -> Path:
    """Compile the layer, unless it is there; raises FileNotFoundError where there is no compiler."""
    source = Path(__file__).with_name("shim.c")
    made = Path(gettempdir()) / f"kinodex-faults-{os.getuid()}-{source.stat().st_mtime_ns}.so"
    if not made.exists():
        compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
        if compiler is None:
            raise FileNotFoundError("no C compiler (cc, gcc or clang), which the layer of faults is made with")
        beside = made.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", beside, source, "-ldl"], check=True)
        beside.rename(made)
    return made


def loaded_in(arguments: list[str]) -> dict[str, str]:
    """The environment in which a process has the layer, and few threads of its own: it forks."""
    return os.environ | {"LD_PRELOAD": str(shim()), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def reloaded() -> None:
    """Start this program again with the layer, unless it has it."""
    if "kinodex-faults" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], loaded_in(sys.orig_argv))


@dataclass
class Struck:
    """Calls at which each fault could have struck, how many failed, and the first of these."""

    counted: dict[str, int] = field(default_factory=dict)
    times: int = 0
    first: str = ""


@contextmanager
def faults_at(place: Path, fault: Fault, nth: int) -> Iterator[Struck]:
    """Within this block the n-th call below a folder fails; 0: none does, and those of its kinds are counted."""
    if fault.how == MEMORY:
        before = resource.getrlimit(resource.RLIMIT_AS)
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + nth * STEP_BYTES if nth else before[0], before[1]))
        try:
            yield Struck({}, 1, "memory")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
        return
    library, found = ctypes.CDLL(None), Struck()
    library.faults_first.restype = ctypes.c_char_p
    library.faults_arm(os.fsencode(place), fault.kinds, ctypes.c_long(nth), fault.how, fault.error)
    try:
        yield found
    finally:
        library.faults_disarm()
        of_kind = {kind: library.faults_counted(kind) for kind in KINDS.values()}
        for name, each in FAULTS.items():
            found.counted[name] = sum(n for kind, n in of_kind.items() if kind & each.kinds) or MEMORY_STEPS
        found.times = library.faults_struck()
        found.first = library.faults_first().decode(errors="replace")
