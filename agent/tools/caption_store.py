"""What captions of a video's parts are kept, and keeping new ones: in the library, else in memory while this runs."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core.question import Note
from agent.environment import Environment
from index.errors import LibraryBusy, StorageError, StorageFull
from index.rows import ClipRow, part_name

StoredCaptions = dict[str, Note | None]
"""Captions by the name of their part; None where the model said nothing that could be used."""


def stored_captions(environment: Environment, video_id: str, model: str) -> StoredCaptions:
    """All captions of a video's parts that `model` wrote for agents, or any model for `kinodex add captions`."""
    added = {part_name(note.start_s, note.end_s): note for note in environment.captions(video_id)}
    return added | stored_clips(environment, video_id, model)


def stored_clips(environment: Environment, video_id: str, model: str) -> StoredCaptions:
    """Those that `model` wrote for agents."""
    rows = environment.source.clips(video_id, model) if environment.keep_captions else []
    kept: StoredCaptions = {row.part: as_note(row) for row in rows}
    for (of, by, part), row in environment.unsaved_captions.items():
        if (of, by) == (video_id, model) and part not in kept:
            kept[part] = None if row is None else as_note(row)
    return kept


def store_captions(environment: Environment, rows: Sequence[ClipRow]) -> str:
    """Keep what was written, in memory while the library cannot be written to: then it says why, the first time.

    In memory alone for a question that is `without_shared_captions`.
    """
    if not environment.keep_captions:
        environment.unsaved_captions |= {(row.video_id, row.model, row.part): row for row in rows}
        return ""
    unwritten = {key: row for key, row in environment.unsaved_captions.items() if row is not None}
    try:
        environment.source.add_clips([*unwritten.values(), *rows])
    except (StorageError, StorageFull, LibraryBusy) as error:
        environment.unsaved_captions |= {(row.video_id, row.model, row.part): row for row in rows}
        return "" if unwritten else f"captions are not kept beyond this run: {error}"
    for key in unwritten:
        del environment.unsaved_captions[key]
    return ""


def as_note(row: ClipRow) -> Note:
    """What a kept caption says."""
    return Note(row.video_id, row.start_s, row.end_s, "caption", row.text, row.confidence)
