"""Every entry of the table of foreign errors matches the real error of the installed version."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.file import LanceFileSession

from kinodex.index.errors import StorageError
from kinodex.index.store.foreign_errors import SIGNS, Meaning, Sign, meanings_of
from kinodex.index.store.storage_errors import storage_errors
from tests.support.loopback import serve_handler

ROWS = pa.table({"number": list(range(100)), "text": ["x" * 100] * 100})


def rows_in(folder: Path) -> LanceDataset:
    """Open the table of rows in the state of now."""
    return lance.dataset(folder / "rows.lance")


def two_handles(folder: Path) -> tuple[LanceDataset, LanceDataset]:
    """Make a table, and open it twice."""
    lance.write_dataset(ROWS, folder / "rows.lance")
    return rows_in(folder), rows_in(folder)


def commit_after_a_delete(folder: Path) -> None:
    one, other = two_handles(folder)
    one.insert(ROWS)
    other = rows_in(folder)
    one.delete("number < 50")
    other.optimize.compact_files()


def replace_an_older_state(folder: Path) -> None:
    one, other = two_handles(folder)
    one.insert(ROWS)
    fragments = lance.fragment.write_fragments(ROWS, other.uri, mode="overwrite")
    operation = lance.LanceOperation.Overwrite(ROWS.schema, fragments)
    LanceDataset.commit(other, operation, other.version, max_retries=0)


def commit_after_a_replacement(folder: Path) -> None:
    _, other = two_handles(folder)
    lance.write_dataset(pa.table({"new": [1]}), folder / "rows.lance", mode="overwrite")
    other.insert(ROWS)


def read_damaged(pattern: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    def provoke(folder: Path) -> None:
        lance.write_dataset(ROWS, folder / "rows.lance")
        for file in (folder / "rows.lance").glob(pattern):
            damage(file)
        rows_in(folder).to_table()

    return provoke


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def another_letter(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"lance.encodings.ColumnEncoding", b"dance.encodings.ColumnEncoding"))


def fill_the_disk(folder: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")


def exceed_the_quota(folder: Path) -> None:
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))  # the system's own text


LOCAL: dict[str, Callable[[Path], object]] = {
    "commit conflict": commit_after_a_delete,
    "Commit conflict": replace_an_older_state,
    "incompatible with concurrent transaction": commit_after_a_replacement,
    "No space left": fill_the_disk,
    "Disk quota exceeded": exceed_the_quota,
    "Invalid range": read_damaged("data/*.lance", half),
    "size is too small": read_damaged("_versions/*.manifest", half),
    "does not have sufficient data": read_damaged("_versions/*.manifest", lambda file: os.truncate(file, 3)),
    "Not found: ": read_damaged("data/*.lance", Path.unlink),
    "LanceError(IO)": read_damaged("data/*.lance", half),
    "was not found": lambda folder: lance.dataset(folder / "missing.lance"),
    "External error: ": read_damaged("data/*.lance", another_letter),
    "Dataset already exists": lambda folder: [lance.write_dataset(ROWS, folder / "rows.lance") for _ in range(2)],
    "object store": lambda _: LanceFileSession("weird://somewhere/films").list_with_delimiter(),
    "Could not parse bucket": lambda _: LanceFileSession("s3://").list_with_delimiter(),
}
NOT_PROVOKED = {
    *("concurrent writers", "failed to fill whole buffer"),
    *("Task was aborted", "Data file '", "LanceError(Schema)", "Schema error: "),
}
"""Lance's own retries run out, a file shrinks while it is read, or one bit among thousands of a file is another: the
words are looked for in the library instead."""
SYSTEM_ERRORS = {
    "os error 28": errno.ENOSPC,
    "os error 122": errno.EDQUOT,
    "os error 27": errno.EFBIG,
    "(os error 11)": errno.EAGAIN,
    "(os error 12)": errno.ENOMEM,
}
"""Rust's form of an error number of the system, of a full disk or no memory (see `tests.support.faults`)."""


def of_texts(*texts: str) -> list[Sign]:
    return [sign for sign in SIGNS if sign.text in texts]


@pytest.mark.parametrize("sign", of_texts(*LOCAL), ids=lambda sign: f"{sign.text}-{sign.meaning.name}")
def test_a_local_error_matches(sign: Sign, tmp_path: Path) -> None:
    with pytest.raises((OSError, RuntimeError, ValueError)) as error:
        LOCAL[sign.text](tmp_path)
    assert sign.text in str(error.value)
    assert sign.meaning in meanings_of(error.value)


def test_a_task_that_lance_ends_for_want_of_a_thread_is_no_damage() -> None:
    """As `python -m tests.support.faults "set metadata" --fault "memory short"` had it called."""
    ended, said = RuntimeError("Task was aborted"), []
    usual = threading.stack_size(2**46)  # more than any machine has: no thread can be begun
    try:
        for size in (2**46, usual):
            threading.stack_size(size)
            with pytest.raises(StorageError) as caught, storage_errors("/films"):
                raise ended
            said.append(str(caught.value))
    finally:
        threading.stack_size(usual)
    assert said[0].startswith("cannot use /films: no memory is left; what was complete stays")
    assert said[1].startswith("cannot use /films: part of it is altered")


@pytest.mark.slow
def test_words_that_cannot_be_provoked_are_in_the_library() -> None:
    (native,) = Path(lance.__file__).parent.glob("lance*.so")
    content = native.read_bytes()
    assert [text for text in NOT_PROVOKED if text.encode() not in content] == []


@pytest.mark.skipif(sys.platform != "linux", reason="error numbers of Linux")
def test_numbers_of_the_system_are_those_of_full_disks_and_memories() -> None:
    assert [text.strip("()") for text in SYSTEM_ERRORS] == [f"os error {number}" for number in SYSTEM_ERRORS.values()]


@contextmanager
def store_that_refuses(code: str, status: int) -> Iterator[str]:
    """Serve every request with one S3 error."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode()

    class Store(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: Any) -> None:
            """Print nothing: pytest's output is for failures."""

    with serve_handler(Store) as address:
        yield address


@contextmanager
def silent_store() -> Iterator[str]:
    """Listen, and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


KEYS = {"aws_access_key_id": "someone", "aws_secret_access_key": "secret"}
CODES = [sign.text.removeprefix("<Code>").removesuffix("</Code>") for sign in SIGNS if sign.library == "S3"]
STORES: dict[str, tuple[AbstractContextManager[str], dict[str, str]]] = {
    **{f"<Code>{code}</Code>": (store_that_refuses(code, 400), KEYS | {"allow_http": "true"}) for code in CODES},
    **{f"status code: {n}": (store_that_refuses("", n), KEYS | {"allow_http": "true"}) for n in (401, 403)},
    "HTTP error: error sending request": (nullcontext("http://127.0.0.1:9"), KEYS | {"allow_http": "true"}),
    "HTTP error: builder error": (nullcontext("http://127.0.0.1:9"), KEYS),
}
"""A store and the options to use it, for the text that the error must have."""


def store_error(text: str) -> str:
    return error_of(*STORES[text])


def error_of(store: AbstractContextManager[str], options: dict[str, str]) -> str:
    with store as address:
        settings = {"aws_endpoint": address, "aws_region": "us-east-1", "client_max_retries": "0", **options}
        try:
            LanceFileSession("s3://films/library", storage_options=settings).list_with_delimiter()
        except (OSError, RuntimeError, ValueError) as error:
            return str(error)
    return "no error"


@pytest.fixture(scope="module")
def store_errors() -> dict[str, str]:
    """All errors of stores, provoked at once: Lance pauses for 3 s before it gives up."""
    with ThreadPoolExecutor(len(STORES)) as pool:
        return dict(zip(STORES, pool.map(store_error, STORES), strict=True))


@pytest.mark.parametrize("sign", of_texts(*STORES), ids=lambda sign: sign.text)
def test_the_error_of_a_store_matches(sign: Sign, store_errors: dict[str, str]) -> None:
    assert sign.text in store_errors[sign.text]
    assert {sign.meaning, Meaning.UNREACHABLE} <= meanings_of(store_errors[sign.text])


def test_a_store_that_never_answers_reads_like_one_that_cannot_be_reached() -> None:
    impatient = KEYS | {"allow_http": "true", "timeout": "100ms", "request_timeout": "100ms"}
    assert Meaning.NO_ANSWER in meanings_of(error_of(silent_store(), impatient))


CREDENTIALS = [sign.text for sign in SIGNS if sign.meaning is Meaning.NO_CREDENTIALS]


def test_missing_credentials_match(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="credentials") as error:
        LanceFileSession("s3://films/library", storage_options={"aws_region": "us-east-1"}).list_with_delimiter()
    assert all(text in str(error.value) for text in CREDENTIALS)
    assert Meaning.NO_CREDENTIALS in meanings_of(error.value)


def test_every_entry_has_a_test() -> None:
    tested = {*LOCAL, *NOT_PROVOKED, *SYSTEM_ERRORS, *STORES, *CREDENTIALS}
    assert {sign.text for sign in SIGNS} == tested


def test_other_errors_have_no_meaning() -> None:
    assert meanings_of(ValueError("vectors have 3 numbers, the space has 4")) == frozenset()
