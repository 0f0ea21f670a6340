"""Vectors that are no numbers any more (NaN, infinite), which Lance leaves out of what it finds without a word.

Where a table has no index every search reads all vectors. There the first search reads them once more, and later ones
only what is new. With an index nothing is read for this; `maintain --check --deep` finds such vectors in every table.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, fits_one_filter, one_of
from kinodex.index.store.vector_index import COLUMN
from kinodex.index.videos.damage import check_vectors, not_finite

_SOUND: WeakKeyDictionary[Tables, dict[str, set[int]]] = WeakKeyDictionary()
"""Fragments without such vectors, by table."""


def check_searched(tables: Tables, name: str, where: Filter | None) -> None:
    """Raise DamagedRows where a vector that a search would compare is not finite."""
    sound = _SOUND.setdefault(tables, {}).setdefault(name, set())
    table, damaged = tables[name], set[str]()
    for number in set(table.fragment_ids()) - sound:
        fragment = table.get_fragment(number)
        assert fragment is not None
        found = set().union(*map(not_finite, fragment.to_batches(columns=["video_id", COLUMN])))
        damaged |= found
        if not found:
            sound.add(number)
    if damaged:
        ids = fits_one_filter(sorted(damaged))
        searched = [*([] if ids is None else [one_of("video_id", ids)]), *([] if where is None else [where])]
        check_vectors(tables.rows(name, all_of(searched), ["video_id", COLUMN]), tables.uri)
