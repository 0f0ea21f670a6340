"""Export of towers into the cache, by a child process: it takes memory, which a process gives back."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kinodex.index import errors
from kinodex.index.errors import ExportRefused, SpaceMismatch
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.model_names import absolute_name, check_unloaded
from kinodex.index.spaces.named_models import check_named
from kinodex.index.spaces.space import local_files
from kinodex.index.spaces.tower_cache import cached_place
from kinodex.index.spaces.towers import TowerKind
from kinodex.index.store.memory import free_memory_bytes

log = logging.getLogger(__name__)
SMALL_BYTES = 40_000_000
"""Models of fewer bytes are loaded here, by torch: that is as quick, and the same on every machine."""
CHILD_BYTES, CHILD_TIMES = 600_000_000, 3
"""Memory that a child needs: so much for torch and open_clip, and the model this many times."""
UNKNOWN_BYTES = 1_500_000_000
"""Taken for the size of a model that the hub may have to send first: that of the default space."""
_children: dict[str, tuple[subprocess.Popen[str], TowerKind]] = {}
"""Children at work by the name of their space, each with the last tower that it makes; they end with this process."""


def is_small(name: str) -> bool:
    files = local_files(name)
    return bool(files) and sum(file.stat().st_size for file in files) < SMALL_BYTES


def export_in_child(name: str, kinds: Sequence[TowerKind], awaited: TowerKind) -> None:
    """Have a child process export towers, and wait for one of them; raises the child's error, or ExportRefused."""
    if name not in _children:
        check_unloaded(name)  # the child would say it too, after importing torch
        size = sum(file.stat().st_size for file in local_files(name)) or UNKNOWN_BYTES
        needed, free = CHILD_BYTES + CHILD_TIMES * size, free_memory_bytes()
        if free < needed:
            raise ExportRefused(f"that takes about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free")
        log.warning("exporting the towers of %s for this machine, once", name)
        _children[name] = _start_child(name, kinds), kinds[-1]
    child, last = _children[name]
    assert child.stdout is not None
    for line in child.stdout:
        kind, _, message = line.strip().partition(": ")
        if message or kind == last:
            _end_child(name)
        if message:
            raise getattr(errors, kind, ExportRefused)(message)
        if kind == awaited:
            return
        if kind == last:
            break
    else:
        if code := _end_child(name):
            raise ExportRefused(f"the process that exports it ended with status {code}")
    export_in_child(name, [awaited], awaited)  # it made others


def _end_child(name: str) -> int:
    child, _ = _children.pop(name)
    child.communicate()
    return child.returncode


def _start_child(name: str, kinds: Sequence[TowerKind]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-P", "-m", "kinodex.jobs.towers.export_process", name, *kinds]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, text=True, env=environment, stdin=pipe, stdout=pipe, stderr=nowhere)


def main() -> None:
    """Export towers as a child of `export_in_child`, say each on stdout as it is there, and end with the parent."""
    from kinodex.index.spaces.export import export_to_cache

    with suppress(OSError):  # where memory runs out, this process is the one to lose
        Path("/proc/self/oom_score_adj").write_text("500")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # torch prints the graphs that it cannot export
    try:
        for kind in export_to_cache(sys.argv[1], sys.argv[2:]):  # type: ignore[arg-type]
            print(kind, file=said)
    except Exception as error:  # whatever it is, the parent says it
        print(f"{type(error).__name__}: {[*str(error).splitlines(), 'no reason'][0]}", file=said)


def _end_with_parent() -> None:
    """End this process when its standard input closes, into which the parent writes nothing."""
    os.read(0, 1)  # not by `sys.stdin`, whose lock a thread may not hold when Python ends
    os._exit(1)


def exported_tower(uri: str, space: Fingerprint, kind: TowerKind, again: bool) -> Path:
    """Have a tower of a library's space in the cache, or its refusal.

    Raises ModelNotNamed if the library alone names it, SpaceMismatch if its name is another space here.
    """
    from kinodex.index.spaces.export import export_to_cache, read_cached, recall

    check_named(space.name, uri)
    place = cached_place(space.digest, kind)
    if again:
        shutil.rmtree(place, ignore_errors=True)
    if read_cached(space.digest, kind) is None:
        if "torch" in sys.modules or is_small(space.name):
            list(export_to_cache(space.name, [kind]))
        else:
            export_in_child(absolute_name(space.name), [kind], kind)
        here = recall(space.name)
        if here is None or here.digest != space.digest:
            raise SpaceMismatch(f"here {space.name} stands for other weights: {here} instead of {space}")
    return place


if __name__ == "__main__":
    main()
