"""Origins that the user named: credentials go only to those, and other addresses are read without any.

An address in a library, a manifest or a playlist was written by somebody else, and what is configured for the web
(`FSSPEC_HTTP`, fsspec's own files) would send a token to whatever host stands there. An origin is named by a source
of the command itself, or in `KINODEX_ORIGINS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kinodex.pipeline.errors import SourceForbidden

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ORIGINS = "KINODEX_ORIGINS"
"""Origins with commas between them, such as https://films.example.org or sftp://nas."""
WEB = frozenset({"http", "https"})
STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "tos", "hdfs"})
"""Object stores: a key signs requests to the provider that the user configured, and is not in them."""
HERE = frozenset({"memory"})
"""What this process itself holds."""
USUAL_PORTS = {"http": 80, "https": 443}


def origin_of(uri: str) -> str:
    """Return the origin of an address: protocol, host and port, without what grants access."""
    parts = urlsplit(uri)
    try:
        port = parts.port
    except ValueError:
        port = -1  # no number: the origin of nothing
    port = USUAL_PORTS.get(parts.scheme.lower()) if port is None else port
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}{'' if port is None else f':{port}'}"


def is_named_origin(uri: str) -> bool:
    """Return True if `KINODEX_ORIGINS` has the origin of an address."""
    named = filter(None, map(str.strip, os.environ.get(ORIGINS, "").split(",")))
    return origin_of(uri) in map(origin_of, named)


def may_read(uri: str) -> bool:
    """Return True if a path, or an address that the user did not name, is of this machine, of the web or of a store.

    Protocols that are chained (`simplecache::`, `zip://film.mp4::...`) or refer to others (`reference://`) read what
    their text says, with the credentials of this machine.
    """
    protocol, is_address, _ = uri.partition("://")
    return not is_address or ("::" not in uri and (protocol.lower() in WEB | STORES | HERE or is_named_origin(uri)))


def check_stored(uri: str) -> None:
    """Raise SourceForbidden for an address that the user did not name, and that may not be read."""
    if not may_read(uri):
        raise SourceForbidden(
            f"{uri}: an address that is stored or listed is read only by http, https and object stores; name it as a "
            f"source of the command, or its origin in {ORIGINS} (not one that joins several by ::)"
        )


@lru_cache(1)
def plain_web() -> type[AbstractFileSystem]:
    """Return a web file system without the headers and cookies of fsspec's configuration."""
    from fsspec.implementations.http import HTTPFileSystem

    return type("PlainWeb", (HTTPFileSystem,), {"protocol": ("plain-web",)})


def web_settings() -> dict[str, Any]:
    """Return the settings of aiohttp's client in fsspec's configuration for the web."""
    from fsspec.config import conf

    return {name: value for each in sorted(WEB) for name, value in conf.get(each, {}).get("client_kwargs", {}).items()}


@lru_cache(64)
def keep_at(origin: str, names: frozenset[str]) -> Callable[..., Any]:
    """Return a middleware of aiohttp's client that takes these headers from requests to other origins, as of a
    redirect.
    """

    async def without_credentials(request: Any, handler: Callable[[Any], Any]) -> Any:
        if origin_of(str(request.url)) != origin and not is_named_origin(str(request.url)):
            for name in {*names, "Authorization", "Cookie"}:
                request.headers.popall(name, None)
        return await handler(request)

    return without_credentials
