"""Leases that ended while the store did not take that they did, as on a full disk.

Who opened the library may take them again at once. For all others each is released once the store takes it, or when
the library is closed: they see that this process is alive, and would wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from kinodex.index.errors import LibraryError


class LeftLeases:
    """The tokens of such leases of one library."""

    def __init__(self) -> None:
        self.unfenced: set[str] = set()
        """Of leases that were taken over, while what the holder before may be about to commit could not be ended."""
        self._unreleased: dict[str, threading.Thread] = {}
        self._closed = threading.Event()

    @property
    def tokens(self) -> set[str]:
        """All of them, as they are now: a thread may release one meanwhile."""
        return {*self._unreleased, *self.unfenced}

    def release_later(self, token: str, release: Callable[[], None], every_s: float) -> None:
        """Release a lease once the store takes that, which is tried so often."""

        def work() -> None:
            is_closed = False
            while not is_closed:
                is_closed = self._closed.wait(every_s)
                with suppress(LibraryError):
                    release()
                    self._unreleased.pop(token)
                    return

        thread = threading.Thread(target=work, name=f"release of {token}", daemon=True)
        self._unreleased[token] = thread
        thread.start()

    def close(self) -> None:
        """Try a last time to release what is left."""
        self._closed.set()
        for thread in list(self._unreleased.values()):
            thread.join()
