"""Leases that ended while the store did not take that they did, as on a full disk.

They are known to the whole process, which is what a lease names as its holder: whoever opens the library in it may take
them again at once. For all others each is released once the store takes that; they see that this process is alive, and
would wait for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from kinodex.index.errors import LibraryError


@dataclass(slots=True)
class LeftLeases:
    """The tokens of such leases of this process."""

    unfenced: set[str] = field(default_factory=set)
    """Of leases that were taken over, while what the holder before may be about to commit could not be ended."""
    _unreleased: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> set[str]:
        """All of them, as they are now: a thread may release one meanwhile."""
        return self._unreleased | self.unfenced

    def release_later(self, token: str, release: Callable[[], None], every_s: float) -> None:
        """Release a lease once the store takes that, which is tried so often."""

        def work() -> None:
            while True:
                time.sleep(every_s)
                with suppress(LibraryError):
                    release()
                    self._unreleased.discard(token)
                    return

        self._unreleased.add(token)
        threading.Thread(target=work, name=f"release of {token}", daemon=True).start()


LEFT = LeftLeases()
