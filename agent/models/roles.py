"""Settings of the language models: the endpoint and model of each role, its parameters and its prices."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import json
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from weakref import WeakValueDictionary

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
)
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from kinodex.agent.errors import BadSettings, CacheDamaged, KeyMissing
from kinodex.agent.protocol import Detail, Usage

DEFAULT_ROLE = "default"
ROLES = (DEFAULT_ROLE, "policy", "reward", "vision", "grounding", "captioner", "judge")
NO_KEY = "no-key"
OPENAI_URL = "https://api.openai.com/v1"
PRICED_TOKENS = 1_000_000


class Price(BaseModel):
    """Money for a million tokens, in whatever currency the user counts; 0 by default.

    Prices are the user's to give for each role: none are built in, since they change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: NonNegativeFloat = 0.0
    output: NonNegativeFloat = 0.0
    cached_input: NonNegativeFloat | None = None
    """For input tokens that the server had cached; None: the same as `input`."""

    def usage(self, input_tokens: int, output_tokens: int, cached_tokens: int) -> Usage:
        """Add up the tokens and their cost; `cached_tokens` are part of `input_tokens`."""
        cached = min(cached_tokens, input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        cost = (input_tokens - cached) * self.input + cached * cached_price + output_tokens * self.output
        return Usage(input_tokens, output_tokens, cached, cost / PRICED_TOKENS)


def default_base_url() -> str:
    """The endpoint where none is named: that of OPENAI_BASE_URL, as the official client has it, else OpenAI's."""
    return os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL


class Role(BaseModel):
    """One model behind one OpenAI-compatible endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    base_url: str = Field(default_factory=default_base_url, validate_default=True)
    """That of OPENAI_BASE_URL, else OpenAI's."""
    key_env: str | None = "OPENAI_API_KEY"
    """Environment variable that holds the key; None: the endpoint needs none."""
    temperature: NonNegativeFloat | None = None
    """None: the temperature of each kind of request."""
    max_tokens: PositiveInt = 4096
    reasoning: bool = True
    """If a reply begins with its reasons, in a short field; models that think before they write do without."""
    joint_schema: bool | None = None
    """If all requests of a run are sent with one schema of their replies, so that a prefix cache that holds the schema
    before the messages serves them all; None: for OpenAI's own API alone."""
    context_tokens: PositiveInt | None = None
    """The tokens of a request and its reply that the model can hold; None: as the server says, when it matters."""
    seed: int | None = None
    extra: dict[str, JsonValue] = {}
    """Further body fields, sent as they are (`{"reasoning_effort": "low"}`)."""
    image_side_px: PositiveInt = 512
    """Frames with a longer side are scaled down to it before they are sent."""
    detail: Detail = "auto"
    """The resolution at which the server reads frames, where neither the frame nor the request says it."""
    images: NonNegativeInt | None = None
    """The most pictures that the server takes in a request; None: found out at its first refusal. More frames are shown
    as contact sheets."""
    price: Price = Price()
    at_once: PositiveInt = 8
    """Requests in flight at the same time."""
    timeout_s: PositiveFloat = 120.0
    """For one attempt."""
    attempts: PositiveInt = 5
    give_up_after_s: PositiveFloat = 300.0
    """No attempt begins later than this after the first."""

    @field_validator("base_url")
    @classmethod
    def _http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # above 65535 it raises
            raise ValueError("must look like http://HOST:PORT/v1 or https://HOST/v1")
        return value.rstrip("/")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def secrets(self) -> frozenset[str]:
        """Values that grant access to the endpoint, as a server may quote them: of the key, the user and the query."""
        parts = urlsplit(self.base_url)
        login = parts.netloc.rpartition("@")[0]
        words = [login, *login.split(":", 1), *(value for _, value in parse_qsl(parts.query))]
        encoded = base64.b64encode(unquote(login).encode()).decode()
        key = os.environ.get(self.key_env or "", "").strip()
        return frozenset({*words, *map(unquote, words), encoded, key} - {""})

    @property
    def joins_schemas(self) -> bool:
        """True if requests are sent with the joint schema of their run (`kinodex.agent.replies`)."""
        return self.host == urlsplit(OPENAI_URL).hostname if self.joint_schema is None else self.joint_schema

    @property
    def place(self) -> str:
        """The endpoint's URL for people and logs: without a user, a password or a query, which may hold a key."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def read_roles(settings: Mapping[str, Mapping[str, object]]) -> dict[str, Role]:
    """Roles by name, one of `ROLES`; each takes the settings that it leaves out from "default".

    Raises `BadSettings` with the first role or field that is invalid.
    """
    for name, values in settings.items():
        if name not in ROLES or not isinstance(values, Mapping):
            allowed = f"the roles are {', '.join(ROLES)}, each with fields such as model and base_url"
            raise BadSettings(f"got {name!r} in the settings of roles; {allowed}")
    shared = settings.get(DEFAULT_ROLE, {})
    roles = {}
    for name, values in settings.items():
        try:
            roles[name] = Role.model_validate({**shared, **values})
        except ValidationError as error:
            source = "" if "base_url" in {**shared, **values} else "; base_url is that of OPENAI_BASE_URL"
            where = source if error.errors()[0]["loc"] == ("base_url",) else ""
            raise BadSettings(f"role {name!r}, {_first_misfit(error)}{where}") from error
    return roles


def _first_misfit(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] in ("missing", "extra_forbidden"):
        return f"{field}: {first['msg']}; the fields are {', '.join(Role.model_fields)}"
    got = first["input"]
    if field == "base_url" and isinstance(got, str):
        got = got.rpartition("@")[2]  # what stands before it may be a password, and an address that is none hides it
    return f"{field}: got {got!r}; {first['msg'].removeprefix('Value error, ')}"


def api_key(role: Role) -> str:
    """The role's key from the environment; a placeholder for endpoints that need none.

    Raises `KeyMissing` if the variable is not set and the endpoint is neither on this machine nor on a
    private network.
    """
    if role.key_env is None:
        return NO_KEY
    key = os.environ.get(role.key_env, "").strip()
    if key:
        return key
    if is_private(role.host):
        return NO_KEY
    raise KeyMissing(
        f"no key for {role.host}: the environment variable {role.key_env} is not set; set it, "
        "name another one as the role's key_env, or point base_url at a local server"
    )


def is_private(host: str) -> bool:
    """True for a server of one's own: loopback, a private address, or a bare name as container networks use."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_loopback or address.is_private


# Replies of language models on disk: no usable reply is paid for twice, and a run can be repeated.
#
# Within one process, a request that is already on its way is waited for and not sent twice. Two processes that send the
# same request at the same moment both pay.

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
        """The reply stored under a key, if there is one; a row with anything else is deleted and asked for again."""
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
        """A lock to hold while this key is looked up and, if it is missing, requested: others then find it stored.

        If the request fails or is cancelled, the next holder sends it.
        """
        return self._locks.setdefault(key, asyncio.Lock())

    def held(self) -> HeldReplies:
        """Count what the cache holds; replies that an earlier version kept are as old as the first day."""
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
    """The sha256 of everything that a reply depends on, as canonical JSON."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
