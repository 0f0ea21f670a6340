"""Tables of a library are created by one process at a time."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import lancedb

from index.errors import (
    LibraryError,
)
from index.library import Library
from index.maintenance.sweep import audit
from index.store.schema import table_schemas
from tests.support.random_library import SETTINGS, fingerprint, made, write


def test_an_interrupted_creation_is_finished(tmp_path):
    schemas = table_schemas(SETTINGS, fingerprint())
    database = lancedb.connect(tmp_path / "library")
    for name in list(schemas)[:4]:
        database.create_table(name, schema=schemas[name])
    library = Library.open_or_create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 3, seed=1))
    assert library.has_video("aaaa")


def test_several_that_make_one_library_at_once(tmp_path):
    def make_and_write(number: int) -> bool:
        start.wait()
        try:
            made_here = Library.open_or_create(uri, SETTINGS, fingerprint())
        except LibraryError as error:
            return not re.search("is at work already|run again|a library already", str(error))
        write(made_here, made(f"{number:04d}", 3, seed=number))
        wrote.append(number)
        return False

    for turn in range(4):
        uri, start = str(tmp_path / f"library {turn}"), threading.Barrier(3)
        wrote: list[int] = []
        with ThreadPoolExecutor(3) as pool:
            assert not any(pool.map(make_and_write, range(3)))
        library = Library.open(uri)
        assert sorted(row.video_id for row in library.videos()) == [f"{number:04d}" for number in sorted(wrote)] != []
        assert audit(library).problems == ()
