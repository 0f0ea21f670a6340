"""A library in an S3-compatible store, over real HTTP: made, written, searched, kept to one ingest, and refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

import numpy as np
import pytest

from kinodex.index.errors import LeaseLost, LibraryBusy, StorageError
from kinodex.index.library import Library
from kinodex.index.rows import NoteRow
from kinodex.index.store.indexes import Thresholds, refresh
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import (
    SETTINGS,
    fingerprint,
    found,
    made,
    numpy_search,
    unit_vectors,
    write,
)
from tests.support.servers.s3_server import environment, s3_server, send

pytestmark = pytest.mark.slow
SOON = Thresholds(scalar_rows=10, vector_rows=1000, stale_rows=10, fragments=2, picture_fragments=2)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        send(f"{address}/films", "PUT")
        yield address


@pytest.fixture
def address(server, monkeypatch) -> str:
    """The server's; whoever uses a library is told of it by the environment alone."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    return str(server)


@pytest.fixture(scope="module")
def shared_uri(server) -> str:
    """The library of all tests that look at nothing but videos of their own: to make one takes a second here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(server).items():
            patch.setenv(name, value)
        return Library.create("s3://films/shared", SETTINGS, fingerprint()).uri


@pytest.fixture
def library(address, shared_uri) -> Library:
    return Library.open(shared_uri)


def test_a_library_is_written_and_searched(address):
    library = Library.create("s3://films/alone", SETTINGS, fingerprint())
    videos = [made(f"{n:04d}", 40, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(3)]
    for video in videos:
        write(library, video)
    write(library, made("left", 10, seed=9), complete=False)
    assert sweep(library) == 1
    query = unit_vectors(1, 99)[0].astype(np.float32)
    for _ in range(2):
        again = pickle.loads(pickle.dumps(library))
        assert found(again.search.frames(query, k=8)) == numpy_search(videos, query, k=8)
        assert [hit.video_id for hit in again.search.lines("speech", "2")] == ["0002"]
        assert again.frames("0002", [7])[0].jpeg == b"jpeg 0002 7"
        refresh(library.tables, SOON)
    library.writer.discard("0001")
    assert audit(library).problems == ()
    assert [row.video_id for row in library.videos()] == ["0000", "0002"]


def test_agents_keep_captions_there_too(library):
    write(library, made("aaaa", 6, seed=1))
    rows = [NoteRow("aaaa", "m", 4.0 * n, 4.0 * n + 4, "said", 0.5, 4) for n in range(4)]

    def keep(first: int) -> None:
        again = Library.open(library.uri)
        for n in range(first, first + 2):
            again.notes.add(rows[n : n + 2])

    with ThreadPoolExecutor() as pool:
        list(pool.map(keep, (0, 1)))
    assert library.notes.read("aaaa", "m") == rows
    library.writer.discard("aaaa")
    assert audit(library).problems == ()


def test_a_lease_holds_there_too(library):
    with library.lease("ingest", "first") as lease:
        with pytest.raises(LibraryBusy, match="first on "), library.lease("ingest", "second"):
            pass
        lease.check()
    with pytest.raises(LeaseLost):
        lease.check()


def _ingest(uri: str, worker: int, both: Barrier) -> None:
    library = Library.open(uri)
    both.wait()
    for number in range(2):
        write(library, made(f"w{worker}v{number}", 10, seed=number))


def test_two_write_at_once(library):
    both = (context := get_context("spawn")).Barrier(2)
    other = context.Process(target=_ingest, args=(library.uri, 1, both))
    other.start()
    _ingest(library.uri, 0, both)
    other.join()
    assert other.exitcode == 0
    assert {f"w{worker}v{number}" for worker in (0, 1) for number in (0, 1)} <= {
        row.video_id for row in library.videos()
    }
    assert audit(library).problems == ()


def test_a_bucket_that_is_not_there(address):
    with pytest.raises(StorageError, match=r"^cannot use s3://nothing/library: there is no such bucket; make it"):
        Library.create("s3://nothing/library", SETTINGS, fingerprint())


def test_an_endpoint_that_does_not_answer(address, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(
        StorageError, match=r"^cannot use s3://films/library: http://127.0.0.1:9 does not answer; check"
    ):
        Library.open("s3://films/library")


def test_an_endpoint_without_encryption_is_asked_for(address, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(StorageError, match=r": http://127.0.0.1:\d+ is plain http; set AWS_ALLOW_HTTP=true"):
        Library.open("s3://films/library")


def test_wrong_credentials(address):
    before = json.loads(send(f"{address}/moto-api/reset-auth", "POST", b"0"))  # from now on they matter
    try:
        with pytest.raises(
            StorageError, match=r": http://127.0.0.1:\d+ refuses these credentials \(InvalidAccessKeyId\)"
        ):
            Library.open("s3://films/library")
    finally:
        allowed = before["PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT"]
        send(f"{address}/moto-api/reset-auth", "POST", str(allowed).encode())
    assert not Library.exists("s3://films/library")
