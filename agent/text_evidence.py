"""What is written of a video: its captions, else what is said in it.

In a video without pictures, of which a library holds words alone, a caption (else a line of the transcript) stands in
a frame's place: it is found by its text's vector, and it is read where a frame would be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agent.core.question import Note

if TYPE_CHECKING:
    from index.library import Library
    from index.rows import FrameVectors


def words_of(library: Library, video_id: str, transcript: bool = True) -> tuple[Note, ...]:
    """The captions of a video by the newest model that wrote any, else, if wanted, its transcript; in time order."""
    captions = library.captions(video_id)
    if captions or not transcript:
        notes = [Note(video_id, row.start_s, row.end_s, "caption", row.text, row.confidence) for row in captions]
    else:
        notes = [Note(video_id, row.start_s, row.end_s, "subtitle", row.text) for row in library.transcript(video_id)]
    return tuple(sorted(notes, key=lambda note: note.start_s))


def as_frames(
    words: Sequence[Note], embed_texts: Callable[[Sequence[str]], NDArray[np.float32]], library: Library | None
) -> FrameVectors:
    """Words of one video, at least one, as frames are: numbered from 0, at the time at which each begins.

    `library` is where captions have their vectors already; None: in the space of `embed_texts` they have none.
    """
    from index.rows import FrameVectors

    if words[0].source == "caption" and library is not None:
        return library.caption_vectors(words[0].video_id)
    times_s = np.array([note.start_s for note in words])
    vectors = embed_texts([note.text for note in words]).astype(np.float16)
    return FrameVectors(np.arange(len(words), dtype=np.int32), times_s, vectors)


def joined(words: Sequence[Note]) -> Note:
    """One note of several that follow each other, at least one; what is repeated is said once."""
    text = "; ".join(dict.fromkeys(note.text.rstrip(" .") for note in words))
    sure = [note.confidence for note in words if note.confidence is not None]
    first, end_s = words[0], max(note.end_s for note in words)
    return Note(first.video_id, first.start_s, end_s, first.source, text, min(sure, default=None))
