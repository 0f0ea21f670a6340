"""Export of a space's image tower into the user's cache, in a process of its own that `CpuTower` starts.

    python -m index.embedding.export_to_cache SPACE DIGEST

PyTorch's exporter changes classes of torch while it works, so no other thread may compute beside it, and it takes up to
2.5 GB of memory, which a process gives back. The tower is checked as for a library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from index.embedding.portable.image_tower import NO_TELEMETRY
from index.embedding.portable.tower_files import SpaceTowers, write_towers
from index.embedding.tower_cache import cached_place, is_whole, put_whole, scratch_beside
from index.errors import KinodexError, SpaceMismatch

LIMIT_S = 900.0
REFUSED, BUSY = 3, 4
"""Exit codes: the export is not possible, for the reason on stdout; another process exports the same at this moment."""


class ExportBusy(Exception):
    """Another process exports the same tower."""


def export_in_child(space_name: str, digest: str) -> str | None:
    """Export a tower into the cache in a child process, which takes half a minute; return why it failed, if it did.

    Raises ExportBusy if another process does so at this moment.
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    command = [sys.executable, "-P", "-m", "index.embedding.export_to_cache", space_name, digest]
    with tempfile.TemporaryFile() as output:
        environment = {**os.environ, "PYTHONPATH": path, NO_TELEMETRY: "1"}
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment)
        try:
            code = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"its export took more than {LIMIT_S:.0f} s"
        finally:
            child.kill()
            child.communicate()
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if code == BUSY:
        raise ExportBusy
    if code == REFUSED:
        return lines[-1]
    return None if code == 0 else f"its export ended with {code}: {lines[-1][:200] if lines else 'nothing was said'}"


def export_to_cache(space_name: str, digest: str) -> Path:
    """Export the image tower of a space into the cache and return its folder; one that is there already is used.

    Raises ExportBusy, SpaceMismatch if the name stands for other weights here, ExportRefused or another SpaceError,
    StorageError if the cache cannot be written, ModuleNotFoundError without torch or onnx.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock  # here, because the query side may be where there is none

    from index.embedding.portable.export_image import export_image_tower
    from index.embedding.space import load_space

    place = cached_place(digest, "image")
    with scratch_beside(place) as scratch, (place.parent / ".image.lock").open("w") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise ExportBusy from error
        if is_whole(place, "image"):
            return place
        space = load_space(space_name, device="cpu", towers="image")
        if space.fingerprint.digest != digest:
            raise SpaceMismatch(f"here {space_name} stands for other weights: {space.fingerprint} instead of {digest}")
        write_towers(scratch, SpaceTowers(space.fingerprint, image=export_image_tower(space, scratch)))
        put_whole(scratch, place, "image")
    return place


def main() -> None:
    """Export a tower as the child of `export_in_child`, and end with it."""
    with suppress(OSError):  # where memory runs out, this process is the one to lose
        Path("/proc/self/oom_score_adj").write_text("500")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        export_to_cache(sys.argv[1], sys.argv[2])
    except ExportBusy:
        sys.exit(BUSY)
    except (KinodexError, ModuleNotFoundError) as error:
        print(error)
        sys.exit(REFUSED)


def _end_with_parent() -> None:
    """End this process when its standard input closes, into which the parent writes nothing."""
    os.read(0, 1)  # not by `sys.stdin`, whose lock a thread may not hold when Python ends
    os._exit(1)


if __name__ == "__main__":
    main()
