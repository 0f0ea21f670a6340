"""A bar of progress in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinodex.jobs.ingest.reports import Progress


def in_notebook() -> bool:
    """Return True if this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a run as a bar where this is a notebook and tqdm is installed; else show nothing."""
    if not (in_notebook() and find_spec("tqdm")):
        yield lambda progress: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=0, unit="video") as bar:

        def show(progress: Progress) -> None:
            bar.total, bar.n = progress.total, progress.done
            bar.set_postfix_str(f"{progress.frames:,} frames, {progress.failed} failed")

        yield show
