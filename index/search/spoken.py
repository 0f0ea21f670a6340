"""Speakers of lines that were found by their meaning: the table of a sentence model holds none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from index.annotations.speakers import Speakers, shown_speaker
from index.annotations.text_lines import shown_models
from index.rows import Hit
from index.store.database import Tables
from index.store.filters import chunked, one_of
from index.videos.visibility import VisibilityCache

COLUMNS = ["video_id", "start_s", "end_s", "text", "model", "speaker", "language"]
Line = tuple[str, float, float, str | None]
Spoken = tuple[str | None, str | None]


def with_speakers(tables: Tables, visible: VisibilityCache, hits: Sequence[Hit]) -> list[Hit]:
    """Give hits in transcripts the speaker and the language of their line, as readers are to see them now."""
    found = _spoken(tables, visible, [hit for hit in hits if hit.source == "transcript"])
    return [
        replace(hit, speaker=found[_key(hit)][0], language=found[_key(hit)][1]) if _key(hit) in found else hit
        for hit in hits
    ]


def _spoken(tables: Tables, visible: VisibilityCache, hits: Sequence[Hit]) -> dict[Line, Spoken]:
    """Read speaker and language of the lines of these hits; of two equal ones those of a speech model."""
    ids = sorted({hit.video_id for hit in hits})
    models, keys = shown_models(visible, "transcript", ids), {_key(hit) for hit in hits}
    rows = []
    for times_s in chunked(sorted({hit.time_s for hit in hits})):
        for some in chunked(ids):
            where = one_of("video_id", some) & one_of("start_s", times_s)
            rows += tables.rows("transcript", where, COLUMNS).to_pylist()
    shown = [row for row in rows if row["model"] in models[row["video_id"]]]
    names = Speakers(tables).names_of(row["speaker"] for row in shown)
    said = {
        (row["video_id"], row["start_s"], row["end_s"], row["text"]): (
            shown_speaker(row["speaker"], names),
            row["language"],
        )
        for row in sorted(shown, key=lambda row: row["model"] is not None)
    }
    return {key: each for key, each in said.items() if key in keys}


def _key(hit: Hit) -> Line:
    return hit.video_id, hit.time_s, hit.end_s, hit.text
