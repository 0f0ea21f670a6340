"""Text towers of libraries, loaded in a thread of their own, and before somebody searches.

One that a library carries is there at once. One that torch loads takes 6 to 9 s of CPU, most of it for imports, and
searches that need none go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from kinodex.index.library import Library
from kinodex.index.spaces.embedders import TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.open import load_text_tower
from kinodex.search.vectors import Floats, QueryVectors, embedder_key, plain_query


def open_text_tower(uri: str, digest: str) -> TextEmbedder:
    """Load a tower through a library of its own, which no other thread reads; raises as `load_text_tower` does."""
    return load_text_tower(Library.open(uri), digest)


class TextTowers:
    """Text towers by library and space, loaded once, that of `photo` once for all libraries. For any thread."""

    def __init__(
        self, load: Callable[[str, str], TextEmbedder] = open_text_tower, vectors: QueryVectors | None = None
    ) -> None:
        self.vectors = QueryVectors() if vectors is None else vectors
        """Vectors of queries, for all who search with these towers."""
        self._load = load
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="towers")
        self._embedder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._lock = Lock()
        self._loads: dict[tuple[str, str], Future[TextEmbedder]] = {}
        self._loaded: dict[str, TextEmbedder] = {}
        self._waiting: dict[tuple[str, str], list[tuple[str, Future[None]]]] = {}

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

    def embed(self, uri: str, space: Fingerprint, text: str) -> Floats:
        """Return the vector of a text, by the tower of a library's URI and space; it waits until that is loaded."""
        key = embedder_key(uri, space.digest)
        return self.vectors.embedded(key, text, lambda words: self.begin(uri, space).result().embed_text([words])[0])

    def begin_text(self, uri: str, space: Fingerprint, text: str) -> Future[None]:
        """Begin to embed a text by a tower that is loaded, for `embed` to find it.

        Texts that come while others are embedded are embedded together, for little more than one costs: the weights
        are read from memory once.
        """
        done = Future[None]()
        if self.vectors.get(embedder_key(uri, space.digest), text) is not None:
            done.set_result(None)
            return done
        with self._lock:
            self._waiting.setdefault((uri, space.digest), []).append((plain_query(text), done))
        self._embedder.submit(self._embed_waiting, uri, space)
        return done

    def _embed_waiting(self, uri: str, space: Fingerprint) -> None:
        with self._lock:
            waiting = self._waiting.pop((uri, space.digest), [])
        key = embedder_key(uri, space.digest)
        texts = [text for text in dict.fromkeys(text for text, _ in waiting) if self.vectors.get(key, text) is None]
        try:
            vectors = self.begin(uri, space).result().embed_text(texts) if texts else ()
            for text, vector in zip(texts, vectors, strict=True):
                self.vectors.keep(key, text, vector)
        except Exception as error:  # it is that of each search
            for _, done in waiting:
                done.set_exception(error)
        else:
            for _, done in waiting:
                done.set_result(None)

    def close(self) -> None:
        """Load none of those that wait; the one that is being loaded is not waited for."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._embedder.shutdown(wait=False, cancel_futures=True)

    def _loaded_once(self, uri: str, digest: str) -> TextEmbedder:
        """In the worker alone."""
        key = embedder_key(uri, digest)
        if key not in self._loaded:
            self._loaded[key] = self._load(uri, digest)
        return self._loaded[key]
