"""What searches by words need besides the weights, had in time: pictures are embedded without it."""

from __future__ import annotations

import sys
from collections.abc import Callable

from index.errors import WeightsMissing


def prepare_for_words(fetch_tokenizer: Callable[[], None]) -> None:
    """Have a space's tokenizer fetched; where it cannot be had, say on stderr what will be missing, and go on."""
    try:
        fetch_tokenizer()
    except WeightsMissing as error:
        print(f"note: {error}; frames are embedded without it, a search by words will need it", file=sys.stderr)
