"""A source of a video: its name, and the stamp by which a change shows."""

from __future__ import annotations

from dataclasses import dataclass, field

SILENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size of a file and a mark that changes with its bytes: equal stamps show, without reading, an unchanged file."""

    size_bytes: int
    mark: str


@dataclass(frozen=True, slots=True)
class Source:
    """One video to read: an absolute local path or a URI, and the subtitle files found beside it.

    `id` is its owner's name for it, if a manifest has one; `stamp` comes from the listing of a remote folder. A web
    server that sends nothing for `timeout_s` is given up, in each try. `is_named` if the user named it: an address that
    stands in a library or a list gets no credentials (see `origins`).
    """

    uri: str
    title: str
    sidecars: tuple[str, ...] = ()
    id: str | None = None
    stamp: Stamp | None = field(default=None, compare=False)
    timeout_s: float = field(default=SILENCE_S, compare=False)
    is_named: bool = field(default=False, compare=False)
