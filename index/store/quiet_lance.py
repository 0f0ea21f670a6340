"""Lance, imported so that it writes nothing but errors to the terminal, unless the user's LANCE_LOG says otherwise.

It reads that variable once, when it is imported, and would else warn of things that only its callers can change, such
as the statistics that its own optimizing of an index asks for.
"""

from __future__ import annotations

import os

from kinodex.errors import KinodexError

_LEVEL = os.environ.get("LANCE_LOG")
os.environ.setdefault("LANCE_LOG", "error")
try:
    import lance
    import lance.file
    from lance.dataset import ColumnOrdering
    from lance.lance import _Session as Session
    from lance.query import BooleanQuery, FullTextQuery, MatchQuery, Occur, PhraseQuery
except ValueError as error:
    raise KinodexError(f"got LANCE_LOG={_LEVEL} ({error}); give error, warn, info or debug, or unset it") from error
finally:
    if _LEVEL is None:
        del os.environ["LANCE_LOG"]  # which is for this process alone

__all__ = [
    "BooleanQuery",
    "ColumnOrdering",
    "FullTextQuery",
    "MatchQuery",
    "Occur",
    "PhraseQuery",
    "Session",
    "lance",
]
