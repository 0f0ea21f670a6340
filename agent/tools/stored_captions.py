"""Stored captions of parts of videos: in the library, else in memory until this process ends."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.protocol.notes import Note
from kinodex.agent.videos.environment import Environment
from kinodex.index.errors import LibraryBusy, StorageError, StorageFull
from kinodex.index.rows import NoteRow, part_name

StoredCaptions = dict[str, Note | None]
"""Captions by the name of their part; None where the model gave no valid one."""


def stored_captions(environment: Environment, video_id: str, model: str) -> StoredCaptions:
    """Captions of a video's parts that `model` wrote for agents, or any model for `kinodex add captions`."""
    added = {part_name(note.start_s, note.end_s): note for note in environment.captions(video_id)}
    return added | stored_clips(environment, video_id, model)


def stored_clips(environment: Environment, video_id: str, model: str) -> StoredCaptions:
    rows = environment.source.clips(video_id, model) if environment.keep_captions else []
    kept: StoredCaptions = {row.part: as_note(row) for row in rows}
    for (of, by, part), row in environment.unsaved_captions.items():
        if (of, by) == (video_id, model) and part not in kept:
            kept[part] = None if row is None else as_note(row)
    return kept


def store_captions(environment: Environment, rows: Sequence[NoteRow]) -> str:
    """Store new captions, in memory while the library cannot be written to; the reason is returned the first time.

    In memory alone for an environment `without_shared_captions`.
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


def as_note(row: NoteRow) -> Note:
    return Note(row.video_id, row.start_s, row.end_s, "captions", row.text, row.confidence)
