"""Speakers of lines that were found by their meaning: the table of a sentence model holds none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kinodex.index.annotations.lines import shown_models
from kinodex.index.annotations.speakers import Speakers, shown_speaker
from kinodex.index.rows import Hit
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import chunked, one_of
from kinodex.index.videos.visibility import VisibilityCache

SPOKEN_COLUMNS = ["video_id", "start_s", "end_s", "text", "model", "speaker", "language"]
Line = tuple[str, float, float, str | None]
Spoken = tuple[str | None, str | None]


def with_speakers(tables: Tables, visible: VisibilityCache, hits: Sequence[Hit]) -> list[Hit]:
    """Give hits in transcripts the speaker and the language of their line, as readers are to see them now."""
    spoken = [hit for hit in hits if hit.found_in == "speech"]
    ids = sorted({hit.video_id for hit in spoken})
    models, rows = shown_models(visible, "speech", ids), []
    for times_s in chunked(sorted({hit.time_s for hit in spoken})):
        for some in chunked(ids):
            where = one_of("video_id", some) & one_of("start_s", times_s)
            rows += tables.rows("speech", where, SPOKEN_COLUMNS).to_pylist()
    shown = [row for row in rows if row["model"] in models[row["video_id"]]]
    names = Speakers(tables).names_of(row["speaker"] for row in shown)
    said: dict[Line, Spoken] = {}
    for row in sorted(shown, key=lambda row: row["model"] is not None):  # of equal lines a speech model's counts
        line = row["video_id"], row["start_s"], row["end_s"], row["text"]
        said[line] = shown_speaker(row["speaker"], names), row["language"]
    lines = [(hit.video_id, hit.time_s, hit.end_s, hit.text) for hit in hits]
    found = [said.get(line) if hit.found_in == "speech" else None for hit, line in zip(hits, lines, strict=True)]
    pairs = zip(hits, found, strict=True)
    return [replace(hit, speaker=each[0], language=each[1]) if each else hit for hit, each in pairs]
