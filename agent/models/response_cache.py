"""Replies of language models on disk: no usable reply is paid for twice, and a run can be repeated.

Within one process, a request that is already on its way is waited for and not sent twice. Two processes that send the
same request at the same moment both pay.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from weakref import WeakValueDictionary

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from kinodex.agent.errors import CacheDamaged

BUSY_TIMEOUT_S = 30.0
TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
DAYS = "CREATE TABLE IF NOT EXISTS days (day INTEGER PRIMARY KEY, first INTEGER NOT NULL)"
"""The number of the first reply of a day, counted from 1970: the age of replies, in a table of its own, since earlier
versions write replies in two columns."""
DAY_S = 86400.0
PAGES = ("page_count", "freelist_count", "page_size")


@dataclass(frozen=True, slots=True)
class HeldReplies:
    """Number of replies in a cache, the bytes that they take, and the age of the oldest, None without any."""

    replies: int
    bytes: int
    oldest_days: float | None


class ResponseCache:
    """One SQLite file (WAL, so on a local disk), safe for several processes at once. Values are JSON objects.

    Open it in the event loop that uses it.

    Raises `CacheDamaged` if the file cannot be read or written, in any of its methods.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._today = -1
        with self._translated_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            with self._translated_errors():
                _prepare(self._db)
        except CacheDamaged:
            self._db.close()
            raise

    def get(self, key: str) -> dict[str, object] | None:
        """Return the reply stored under a key, if there is one.

        A row with anything else is deleted and asked for again.
        """
        with self._translated_errors():
            row = self._row(key)
            reply = None if row is None else _json_object(row)
            if row is not None and reply is None:
                self._delete(key, row)
        return reply

    def put(self, key: str, reply: Mapping[str, object], *, instead: Mapping[str, object] | None = None) -> None:
        """Store a reply; one that another process stored first under the same key stays.

        With `instead`, the reply that the caller found and cannot use, the new one takes that one's place, and no
        other's.
        """
        with self._translated_errors():
            row = None if instead is None else self._row(key)
            if row is not None and _json_object(row) in (None, instead):
                self._delete(key, row)
            self._note_day()
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(dict(reply))))

    def _note_day(self) -> None:
        """Note the number that the first reply of today gets, once a day."""
        today = int(time.time() // DAY_S)
        if today != self._today:
            self._db.execute("INSERT OR IGNORE INTO days SELECT ?, COALESCE(MAX(rowid), 0) + 1 FROM replies", (today,))
            self._today = today

    def _row(self, key: str) -> bytes | None:
        row = self._db.execute("SELECT CAST(reply AS BLOB) FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _delete(self, key: str, row: bytes) -> None:
        """Delete a row as it was read: what another process has put in its place stays."""
        self._db.execute("DELETE FROM replies WHERE key = ? AND CAST(reply AS BLOB) = ?", (key, row))

    def lock(self, key: str) -> asyncio.Lock:
        """Return a lock to hold while this key is looked up and, if it is missing, requested.

        Others then find it stored.

        If the request fails or is cancelled, the next holder sends it.
        """
        return self._locks.setdefault(key, asyncio.Lock())

    def held(self) -> HeldReplies:
        """Count what the cache holds, and the age of its oldest reply in days."""
        with self._translated_errors():
            count, least = self._db.execute("SELECT COUNT(*), MIN(rowid) FROM replies").fetchone()
            pages, free, size = (self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in PAGES)
            (day,) = self._db.execute("SELECT MAX(day) FROM days WHERE first <= ?", (least or 0,)).fetchone()
        return HeldReplies(count, (pages - free) * size, None if day is None else time.time() // DAY_S - day)

    def beyond(self, most_bytes: float, days: float) -> int:
        """Count the oldest replies, those that are older than this many days or more than fit."""
        held = self.held()
        with self._translated_errors():
            since = math.ceil(time.time() / DAY_S - days)
            (first,) = self._db.execute("SELECT MIN(first) FROM days WHERE day >= ?", (since,)).fetchone()
            if first is None:  # no reply came since
                return held.replies
            (old,) = self._db.execute("SELECT COUNT(*) FROM replies WHERE rowid < ?", (first,)).fetchone()
        too_many = math.ceil(held.replies * (1 - most_bytes / held.bytes)) if held.bytes > most_bytes else 0
        return max(int(old), too_many)

    def forget_first(self, count: int) -> None:
        if count:
            oldest = "SELECT rowid FROM replies ORDER BY rowid LIMIT ?"
            with self._translated_errors():
                self._db.execute(f"DELETE FROM replies WHERE rowid IN ({oldest})", (count,))

    def shrink(self) -> None:
        """Give the room of deleted replies back to the disk; where another process uses the cache, new ones take it."""
        ranked = "SELECT day, (SELECT COUNT(*) FROM replies WHERE rowid < first) FROM days"
        nth = "SELECT rowid FROM replies ORDER BY rowid LIMIT 1 OFFSET ?"
        with self._translated_errors():
            ranks = self._db.execute(ranked).fetchall()
            with suppress(sqlite3.OperationalError):
                self._db.execute("VACUUM")
            for day, before in ranks:  # it may have given all replies new numbers
                after = "(SELECT COALESCE(MAX(rowid), 0) + 1 FROM replies)"
                self._db.execute(f"UPDATE days SET first = COALESCE(({nth}), {after}) WHERE day = ?", (before, day))

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> ResponseCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise CacheDamaged(
                f"the response cache {self.path} cannot be used: {error}; "
                "move the file (and its -wal and -shm) away, or name another one"
            ) from error


class ReadOnlyCache(ResponseCache):
    """A cache into which nothing is put: what is new there counts as paid."""

    def put(self, key: str, reply: Mapping[str, object], *, instead: Mapping[str, object] | None = None) -> None:
        """Store nothing."""


def _json_object(row: bytes) -> dict[str, object] | None:
    try:
        value: object = json.loads(row)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


# While several processes switch a new file to WAL, SQLite reports busy at once, whatever its timeout is.
@retry(
    retry=retry_if_exception(_is_busy), stop=stop_after_delay(BUSY_TIMEOUT_S), wait=wait_random(0, 0.05), reraise=True
)
def _prepare(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(TABLE)
    database.execute(DAYS)
    database.execute("INSERT INTO days SELECT ?, 1 WHERE NOT EXISTS (SELECT 1 FROM days)", (int(time.time() // DAY_S),))


def cache_key(inputs: Mapping[str, object]) -> str:
    """Return the sha256 of everything that a reply depends on, as canonical JSON."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
