"""Voices of a library and the names that people gave them: `speaker-1`, `speaker-2`, ... through all videos.

Transcript lines hold the number, so a name given later shows everywhere at once. A voice stays when its videos are
removed: videos that are indexed again find it, with its name. Each voice is kept as it was heard longest in one
video, so the same videos in the same order give the same voices, however often a run is broken off and repeated.

All writes are under one lease, since voices of several videos may be matched at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from kinodex.index.errors import QueryError
from kinodex.index.rows import SpeakerRow, SpeechRow, SpokenWord, known
from kinodex.index.store.database import Tables
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.leases import Lease, awaited_lease
from kinodex.index.text import composed

SPEAKERS = "speakers"
VOICES_LEASE, VOICES_OWNER = "voices", "a run that knows voices"
NUMBERED = re.compile(r"(?:speaker[- ])?([1-9][0-9]*)", re.IGNORECASE)
STORED = re.compile(r"speaker-[1-9][0-9]*")
LONGEST_NAME = 100
JOINERS = re.compile("(?<=\\S)[\u200c\u200d]+(?=\\S)")
"""Between letters of Persian and Indian names, and in emoji; nothing of them is printed."""


class Speakers:
    """Voices, their names, and lines as readers see them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def rows(self) -> list[SpeakerRow]:
        """List the voices by number."""
        rows = self._stored(["speaker", "name", "seconds", "model"]).values()
        return [known(SpeakerRow, row) for row in rows if row["seconds"] > 0]

    def names(self) -> dict[str, str]:
        """Read the names that were given, by speaker."""
        return {row.speaker: row.name for row in self.rows() if row.name}

    def lines(self, rows: Iterable[Mapping[str, Any]]) -> list[SpeechRow]:
        """Make transcript lines of stored rows, each with the name of its speaker as readers are to see it."""
        rows = list(rows)
        names = self.names_of(row["speaker"] for row in rows)
        words = [tuple(SpokenWord(**word) for word in row.get("words") or ()) for row in rows]
        return [
            known(SpeechRow, {**row, "speaker": shown_speaker(row["speaker"], names), "words": each})
            for row, each in zip(rows, words, strict=True)
        ]

    def names_of(self, speakers: Iterable[str | None]) -> dict[str, str]:
        """Read the names that were given, if any of these speakers of lines is a voice: most libraries have none."""
        is_any = any(speaker and STORED.fullmatch(speaker) for speaker in speakers)
        return self.names() if is_any else {}

    def languages(self) -> dict[str, int]:
        """Count the stored transcript lines by language, the commonest first; those without one are left out."""
        counts = self._tables.rows("speech", None, ["language"])["language"].value_counts().to_pylist()
        named = [(each["values"], each["counts"]) for each in counts if each["values"]]
        return dict(sorted(named, key=lambda each: (-each[1], each[0])))

    def match(self, voices: Sequence[Any], model: str, same: float) -> list[str]:
        """Find the speaker of each voice of one video, and store those that are new; `model` made the vectors.

        A voice has a `vector` `[dim]` of unit length and the `seconds` of speech in it; from a cosine of `same` on two
        are one person.
        """
        if not voices:
            return []
        ensure_table(self._tables, SPEAKERS)
        with self._alone() as lease:
            known = self._stored()
            found = [_match(voice, known, model, same) for voice in voices]
            changed = [row for row in known.values() if row.pop("is_changed", False)]
            lease.check()
            self._tables.upsert(SPEAKERS, ["speaker"], changed)
        return found

    def find(self, text: str) -> list[SpeakerRow]:
        """Find the speakers that `speaker-3`, `speaker 3`, `3` or a name stands for; raises QueryError for none."""
        rows, number = self.rows(), NUMBERED.fullmatch(text.strip())
        same = composed(text.strip()).casefold()
        found = [row for row in rows if row.name and composed(row.name).casefold() == same]
        found = found or [row for row in rows if number and row.speaker == f"speaker-{int(number[1])}"]
        if not found:
            held = ", ".join(f"{row.speaker} ({row.name})" if row.name else row.speaker for row in rows[:20])
            raise QueryError(
                f"got speaker {text!r}, whom {self._tables.uri} does not know; it knows {held or 'nobody'}"
                + ("" if held else ": kinodex add speech --speakers tells voices apart")
            )
        return found

    def name(self, speakers: Sequence[str], name: str | None) -> None:
        """Name voices, or take their names away with None; raises QueryError for what is no name."""
        plain = None if name is None else _checked_name(name)
        self._change(speakers, lambda row: row | {"name": plain})

    def forget(self, speakers: Sequence[str]) -> None:
        """Delete voices and their names; lines keep the number, which no other voice will get."""
        self._change(speakers, lambda row: row | {"name": None, "vector": [0.0] * len(row["vector"]), "seconds": 0.0})

    def _change(self, speakers: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        with self._alone() as lease:
            rows = [change(row) for row in self._stored().values() if row["speaker"] in speakers]
            lease.check()
            self._tables.upsert(SPEAKERS, ["speaker"], rows)

    def _stored(self, columns: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """Read the stored rows by speaker, in order of their numbers."""
        rows = self._tables.rows(SPEAKERS, None, columns).to_pylist() if self._tables.has(SPEAKERS) else []
        return {row["speaker"]: row for row in sorted(rows, key=lambda row: _number(row["speaker"]))}

    def _alone(self) -> AbstractContextManager[Lease]:
        return awaited_lease(self._tables, VOICES_LEASE, VOICES_OWNER)


def shown_speaker(speaker: str | None, names: Mapping[str, str]) -> str | None:
    """Give the name of a line's speaker for readers: that of a voice, else `speaker 3`; others as they are."""
    if speaker is None or not STORED.fullmatch(speaker):
        return speaker
    return names.get(speaker) or speaker.replace("-", " ")


def _match(voice: Any, known: dict[str, dict[str, Any]], model: str, same: float) -> str:
    """Find the speaker of a voice, or add one; rows of `known` that have to be written are marked."""
    vector = np.asarray(voice.vector, np.float32)
    of_model = [row for row in known.values() if row["model"] == model]
    cosines = [float(vector @ np.asarray(row["vector"], np.float32)) for row in of_model]
    best = int(np.argmax(cosines)) if cosines else -1
    if cosines and cosines[best] >= same:
        row = of_model[best]
        if voice.seconds > row["seconds"]:
            row.update(vector=vector.tolist(), seconds=float(voice.seconds), is_changed=True)
        return str(row["speaker"])
    speaker = f"speaker-{max(map(_number, known), default=0) + 1}"
    facts = {"vector": vector.tolist(), "seconds": float(voice.seconds), "model": model}
    known[speaker] = {"speaker": speaker, "name": None, **facts, "is_changed": True}
    return speaker


def _checked_name(name: str) -> str:
    plain = " ".join(name.split())
    printed = JOINERS.sub("", plain)
    if not printed or len(plain) > LONGEST_NAME or NUMBERED.fullmatch(plain) or not printed.isprintable():
        raise QueryError(
            f"got the name {name!r}; a name has 1 to {LONGEST_NAME} printed characters, and is no number of a speaker"
        )
    return plain


def _number(speaker: str) -> int:
    """Return the number of a voice; 0 for a row that kinodex did not write."""
    return int(speaker.removeprefix("speaker-")) if STORED.fullmatch(speaker) else 0
