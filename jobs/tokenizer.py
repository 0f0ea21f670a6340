"""The tokenizer of a space, fetched in time: frames are embedded without it, a search by words needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable

from index.errors import WeightsMissing


def fetch_or_note(fetch_tokenizer: Callable[[], None]) -> None:
    """Fetch a space's tokenizer; if it cannot be had, print on stderr what will be missing, and go on."""
    try:
        fetch_tokenizer()
    except WeightsMissing as error:
        print(f"note: {error}; frames are embedded without it, a search by words will need it", file=sys.stderr)
