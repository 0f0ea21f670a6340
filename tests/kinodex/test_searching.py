"""The table that a search of the front door looks into, and the refusal of what makes no sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.frames import Table
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.jobs.errors import UsageError
from kinodex.library import find_hits


def test_each_table_gives_hits_of_its_own_kind(library: Path) -> None:
    reader = Library.open(str(library))
    tower = reader.load_space(None, "text")

    def sources(table: Table) -> set[str]:
        hits = find_hits(
            reader, "the code word", lambda query: tower.embed_text([str(query)])[0], Scope(), 5, table, 0.0, None
        )
        return {hit.source for hit in hits}

    assert sources("frames") == {"frame"}
    assert sources("transcript") == sources("words") == {"transcript"}
    assert sources("captions") == set()
    assert sources("all") & {"frame", "both"}
    with pytest.raises(UsageError, match="table='words'; they are looked for in frames"):
        find_hits(reader, np.ones(3), lambda query: np.ones(3), Scope(), 5, "words", 0.0, None)
