"""Text towers of libraries, loaded in a thread of their own, and before somebody searches.

One that a library carries is there at once. One that torch loads takes 6 to 9 s of CPU, most of it for imports, and
searches that need none go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from index.embedding.embedders import TextEmbedder
from index.embedding.space import Fingerprint
from index.library import Library
from jobs.open_library import load_text_tower

LoadTower = Callable[[str, str], TextEmbedder]
"""Function that loads a tower, of a library's URI and the digest of one of its spaces."""


def open_text_tower(uri: str, digest: str) -> TextEmbedder:
    """Load a tower through a library of its own, which no other thread reads; raises as `load_text_tower` does."""
    return load_text_tower(Library.open(uri), digest)


class TextTowers:
    """Text towers by library and space, loaded once, those of one space once for all libraries. For any thread."""

    def __init__(self, load: LoadTower = open_text_tower) -> None:
        self._load = load
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="towers")
        self._lock = Lock()
        self._loads: dict[tuple[str, str], Future[TextEmbedder]] = {}
        self._loaded: dict[str, TextEmbedder] = {}

    def begin(self, uri: str, space: Fingerprint) -> Future[TextEmbedder]:
        """Begin to load a tower unless it was; its result raises what `load_text_tower` does.

        One that could not be loaded is tried again: somebody may have brought what was missing.
        """
        key = (uri, space.digest)
        with self._lock:
            held = self._loads.get(key)
            if held is None or (held.done() and held.exception() is not None):
                held = self._loads[key] = self._worker.submit(self._loaded_once, uri, space.digest)
            return held

    def close(self) -> None:
        """Load none of those that wait; the one that is being loaded is not waited for."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _loaded_once(self, uri: str, digest: str) -> TextEmbedder:
        """In the worker alone."""
        if digest not in self._loaded:
            self._loaded[digest] = self._load(uri, digest)
        return self._loaded[digest]
