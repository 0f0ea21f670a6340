"""Videos that an ingest finds in another place than their address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.addresses.states import address_states, videos_by_id
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sources import title_of
from kinodex.redaction import redact_uri

SETTLE_S = 10.0
"""Limit of the looks of one commit of an ingest, which waits for them."""

READING_STAGES = ("fetch", "open", "decode", "write")
"""Failures of these stages are over once the library holds the video; a broken subtitle file stays one."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of `settle`: the old address of each moved video by its new one, and finds that wait for the run's end."""

    moved_from: dict[str, str]
    waiting: list[FetchedVideo]


def settle(library: Library, found: Sequence[FetchedVideo], check: Callable[[], None], *, is_last: bool) -> Settled:
    """Update the address of each video that was found in another place and is gone, or replaced, at its own.

    A place whose bytes changed is for this run to read first; at its end (`is_last`) it counts as there, and both are
    kept. `check` is called right before something is written.
    """
    rows = videos_by_id(library, (each.video_id for each in found))
    elsewhere: dict[str, list[FetchedVideo]] = defaultdict(list)
    for each in found:
        if each.video_id in rows and redact_uri(each.source.uri) != redact_uri(rows[each.video_id].uri):
            elsewhere[each.video_id].append(each)
    looked = address_states(library, [rows[video_id] for video_id in elsewhere], SETTLE_S)
    states = {video_id: state for video_id, (state, _) in zip(elsewhere, looked, strict=True)}
    waiting = [each for id_, places in elsewhere.items() if states[id_] == "changed" for each in places]

    def rank(video_id: str, uri: str) -> tuple[bool, str]:
        return title_of(uri) != title_of(rows[video_id].uri), uri  # one with its file name first

    moves = {
        id_: min(places, key=lambda each: rank(id_, each.source.uri))
        for id_, places in elsewhere.items()
        if states[id_] in ("gone", "other")
    }
    titled = {id_: title_there(rows[id_], each.source.title) for id_, each in moves.items()}
    library.writer.readdress({id_: (each.source.uri, titled[id_]) for id_, each in moves.items()}, check)
    library.ingest_log.forget_sources([redact_uri(rows[id_].uri) for id_ in moves if states[id_] == "gone"])
    if moves:
        new_uris = {redact_uri(rows[id_].uri): each.source.uri for id_, each in moves.items()}
        move_failures(library, new_uris.get, over=READING_STAGES)
    return Settled({each.source.uri: rows[id_].uri for id_, each in moves.items()}, [] if is_last else waiting)


def title_there(row: VideoRow, title: str) -> str:
    """Give the title of a video in another place: one that somebody gave it stays, the name of its file follows."""
    return title if row.title == composed(title_of(row.uri)) else row.title


def move_failures(library: Library, new_uri: Callable[[str], str | None], over: Sequence[str] = ()) -> None:
    """Give failures the new addresses of their files; those of stages that are `over` are forgotten."""
    log = library.ingest_log
    moved = [(row, uri) for row in log.failures() if (uri := new_uri(row.uri)) is not None]
    log.clear_failures([row.uri for row, _ in moved])
    log.add_failures([replace(row, uri=uri) for row, uri in moved if row.stage not in over])
