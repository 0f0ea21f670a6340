"""Annotations of videos as readers see it: voices, text on screen, scenes, captions of any parts, and all lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kinodex.index.additions import append_rows
from kinodex.index.errors import LibraryBusy, QueryError
from kinodex.index.kinds import LINE_KINDS, LineKind
from kinodex.index.rows import (
    AddedFacts,
    ChapterRow,
    NoteRow,
    ScreenTextRow,
    SpeakerRow,
    SpeechRow,
    SpokenWord,
    TextLine,
    VideoRow,
    known,
    moved,
    stored_range,
)
from kinodex.index.store.database import Tables, storage_errors
from kinodex.index.store.indexes import AFTER_RUN, ensure_table, join_fragments, present, small_fragments
from kinodex.index.store.leases import DEFAULT_LEASE, Lease, awaited_lease
from kinodex.index.store.schema import Filter, all_of, equal, one_of, overlapping
from kinodex.index.text import composed
from kinodex.index.videos.visibility import VisibilityCache

# Voices of a library and the names that people gave them: `speaker-1`, `speaker-2`, ... through all videos.
#
# Transcript lines hold the number, so a name given later shows everywhere at once. A voice stays when its videos are
# removed: videos that are indexed again find it, with its name. Each voice is kept as it was heard longest in one
# video, so the same videos in the same order give the same voices, however often a run is broken off and repeated.
#
# All writes are under one lease, since voices of several videos may be matched at once. Older libraries get the table
# when the first voice is stored.

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


# Rows of a stage's table as readers see them: those of the newest model that completed the stage of a video.


def newest_rows(
    tables: Tables,
    visible: VisibilityCache,
    table: str,
    stage: str,
    name: str,
    filters: Sequence[Filter],
    columns: Sequence[str],
    start_s: float | None = None,
    end_s: float | None = None,
) -> list[dict[str, Any]]:
    """Read rows of one video, by id or name, of the newest model that completed the stage; raises UnknownVideo."""
    video = visible.video(name)
    video_id = video.video_id
    models = visible.models(stage, [video_id]).get(video_id, ())
    if not models or not present(tables, [table]):
        return []
    of_model = [equal("video_id", video_id), equal("model", models[-1])]
    limits = overlapping(*stored_range(video.zero_s, start_s, end_s))
    rows = tables.rows(table, all_of([*of_model, *filters, *limits]), columns).to_pylist()
    return [moved(row, -video.zero_s) for row in rows]


# Text that the pictures of videos show: a row for each line, from its first frame to its last.

SCREEN_TEXT = "screen_text"
SCREEN_TEXT_COLUMNS = [*ScreenTextRow.__slots__]


class ScreenText:
    """Lines of text on screen, of the newest model that read a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[ScreenTextRow]:
        """Read the lines that share some time with `[start_s, end_s)`, by time, then from top to bottom."""
        found = newest_rows(
            self._tables, self._visible, SCREEN_TEXT, SCREEN_TEXT, video_id, [], SCREEN_TEXT_COLUMNS, start_s, end_s
        )
        rows = [known(ScreenTextRow, row | {"box": tuple(row["box"])}) for row in found]
        return sorted(rows, key=lambda row: (row.start_s, row.box[1], row.box[0]))

    def add(self, videos: Mapping[str, Sequence[Any]], model: str) -> None:
        """Append lines, as a `ScreenTextRow` has them, by video id; `Additions.complete` makes them visible."""
        append_rows(self._tables, self._visible, SCREEN_TEXT, videos, model=lambda _: model)


# Scenes and chapters of videos, each with a title and a summary.

CHAPTERS = "chapters"
CHAPTER_COLUMNS = [*ChapterRow.__slots__]
EXACT_S = 1e-6
CHAPTER_SOURCES = ("captions", "speech", "screen_text", "shots")
"""Stages whose rows summaries are written from."""


class Chapters:
    """Scenes and chapters, by the newest model that summarised a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, level: Literal["scene", "chapter"] | None = None) -> list[ChapterRow]:
        """Read the scenes and chapters of a video, or those of one level, by time, a chapter before its scenes."""
        of_level = [] if level is None else [equal("level", level)]
        found = newest_rows(self._tables, self._visible, CHAPTERS, CHAPTERS, video_id, of_level, CHAPTER_COLUMNS)
        cuts = newest_rows(self._tables, self._visible, "shots", "shots", video_id, [], ["start_s"]) if found else []
        if cuts_s := [row["start_s"] for row in cuts]:  # shots that were found later, perhaps
            gap_s = 1 / (self._visible.video(video_id).sample_fps or 1.0)
            found = [row | {name: _at_cut(row[name], cuts_s, gap_s) for name in ("start_s", "end_s")} for row in found]
        return sorted((ChapterRow(**row) for row in found), key=lambda row: (row.start_s, row.level, row.number))

    def add(self, videos: Mapping[str, Sequence[ChapterRow]]) -> None:
        """Append rows by video id; `Additions.complete` makes them visible. `Additions` makes the table before."""
        append_rows(self._tables, self._visible, CHAPTERS, videos)

    def outdated(self, model: str) -> list[str]:
        """List the ids of videos that got captions, speech, text on screen or shots after this model's summaries."""
        stages = one_of("stage", [CHAPTERS, *CHAPTER_SOURCES])
        rows = self._tables.rows("additions", stages, ["video_id", "stage", "model", "added_at"]).to_pylist()
        written = {
            row["video_id"]: row["added_at"] for row in rows if (row["stage"], row["model"]) == (CHAPTERS, model)
        }
        sources = [row for row in rows if row["stage"] in CHAPTER_SOURCES and row["video_id"] in written]
        later = {row["video_id"] for row in sources if row["added_at"] > written[row["video_id"]]}
        return sorted(self._visible.videos(later))

    def untitled(self, model: str) -> list[str]:
        """List the ids of videos that have parts to which this model gave no title that could be used."""
        models = self._visible.models(CHAPTERS)
        if not any(model in each for each in models.values()) or not present(self._tables, [CHAPTERS]):
            return []
        rows = self._tables.rows(CHAPTERS, equal("model", model) & equal("title", ""), ["video_id"])
        found = set(rows["video_id"].to_pylist())
        return sorted(video_id for video_id in self._visible.videos(found) if model in models.get(video_id, ()))

    def has_titles(self, video: VideoRow, model: str) -> bool:
        """True if this model's summaries of a video, complete, have a title."""
        if model not in self._visible.models(CHAPTERS, [video.video_id]).get(video.video_id, ()):
            return False
        of_video = equal("video_id", video.video_id) & equal("model", model)
        titles = self._tables.rows(CHAPTERS, of_video, ["title"])["title"].to_pylist()
        return any(titles)


def _at_cut(time_s: float, cuts_s: Sequence[float], gap_s: float) -> float:
    """The cut that lies between a sampled time and the sample before it; the time itself without one."""
    return max((cut for cut in cuts_s if time_s - gap_s - EXACT_S <= cut <= time_s), default=time_s)


# Captions of any parts of videos, written while agents answer: each complete by itself, found again by its part. And
# verdicts of models that looked for a text in a part (`kinodex.jobs.verify`), under model names of their own.
#
# They are no optional stage (see `additions`), whose rows count once a whole video has them: an agent needs some parts
# now, and what was paid for is stored. So they have a table of their own, which searches and segments do not use. It is
# created on the first write: older libraries stay as they are. If two processes write a part at the same moment, the
# first row stays.

NOTES = "notes"
KEYS = ["video_id", "model", "part"]
NOTES_LEASE, NOTES_OWNER = "notes", "an agent that keeps captions"
NOTE_COLUMNS = [*(name for name in NoteRow.__slots__ if name != "sought"), "part"]
MANY_FRAGMENTS = 64
"""Each write of captions is one."""


class Notes:
    """Captions of parts of videos, and verdicts on them, by model."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def read(self, video_id: str, model: str) -> list[NoteRow]:
        """Read a model's captions of parts of a video, or its verdicts, by time."""
        if not self._tables.has(NOTES):
            return []
        rows = self._tables.rows(NOTES, equal("video_id", video_id) & equal("model", model), NOTE_COLUMNS)
        in_order = rows.sort_by([("start_s", "ascending"), ("end_s", "ascending")]).to_pylist()
        zero_s = self._visible.zeros_s([video_id])[video_id]
        return [NoteRow(sought=row.pop("part").partition(" ")[2], **moved(row, -zero_s)) for row in in_order]

    def add(self, rows: Sequence[NoteRow]) -> None:
        """Store captions, visible at once; of each part and model the first one stays.

        Rows of videos that the library does not hold are left out. Several processes may write, beside anything else.
        """
        held = self._visible.videos({row.video_id for row in rows})
        zeros_s = self._visible.zeros_s(held)
        stored = [NoteRow(**moved(asdict(row), zeros_s[row.video_id])) for row in rows if row.video_id in held]
        parts = {(row.video_id, row.model, row.part): row for row in stored}
        if parts:
            ensure_table(self._tables, NOTES)
            columns = [{name: getattr(row, name) for name in NOTE_COLUMNS} for row in parts.values()]
            self._tables.insert(NOTES, KEYS, columns)
            self._tidy()
        gone = held.keys() - self._visible.videos(held)
        if gone:
            self.forget(one_of("video_id", sorted(gone)))

    def forget(self, where: Filter) -> None:
        """Delete the captions that match a filter."""
        if self._tables.has(NOTES):
            self._tables.delete(NOTES, where)

    def facts(self) -> tuple[AddedFacts, ...]:
        """Count captions and their videos, by model."""
        if not self._tables.has(NOTES):
            return ()
        rows = self._visible.seen(self._tables.rows(NOTES, None, ["video_id", "model"]))
        counts = (
            rows.group_by("model")
            .aggregate([("video_id", "count_distinct"), ("video_id", "count")])
            .sort_by("model")
            .to_pylist()
        )
        return tuple(
            AddedFacts(NOTES, each["model"], each["video_id_count_distinct"], each["video_id_count"]) for each in counts
        )

    def _tidy(self) -> None:
        """Join fragments now and then, in one process at a time: no run does it in a library that agents only read."""
        if small_fragments(self._tables, NOTES) <= MANY_FRAGMENTS:
            return
        try:
            with Lease(self._tables, NOTES_LEASE, NOTES_OWNER, DEFAULT_LEASE), storage_errors(self._tables.uri):
                join_fragments(self._tables, NOTES, MANY_FRAGMENTS, AFTER_RUN)
        except LibraryBusy:
            return  # the holder of the lease joins them


# The lines of text that readers see of a video, of all three kinds: said, on screen, and captions.
#
# Of captions, speech and text on screen those of the newest model are seen, and subtitles always.

LINE_COLUMNS = ["video_id", "start_s", "end_s", "text", "model"]
LineKey = tuple[str, LineKind, str | None]
"""Video, kind and model of lines."""


def lines_of(tables: Tables, visible: VisibilityCache, video_id: str) -> list[TextLine]:
    """Read the lines that readers see of a complete video, kind by kind, each in order of time."""
    lines = []
    for source in LINE_KINDS:
        models = shown_models(visible, source, [video_id])[video_id]
        for name in present(tables, [source]):
            rows = tables.rows(name, equal("video_id", video_id), LINE_COLUMNS).sort_by("start_s").to_pylist()
            lines += [TextLine(source=source, **row) for row in rows if row["model"] in models]
    return lines


def count_lines(tables: Tables, visible: VisibilityCache) -> Counter[LineKey]:
    """Count the lines that readers see of all complete videos, by video, kind and model."""
    videos = visible.videos()
    counts: Counter[LineKey] = Counter()
    for source in LINE_KINDS:
        models = shown_models(visible, source, videos)
        for name in present(tables, [source]):
            for batch in tables.batches(name, None, ["video_id", "model"]):
                for row in grouped(batch, ["video_id", "model"]):
                    if row["model"] in models.get(row["video_id"], ()):
                        counts[row["video_id"], source, row["model"]] += row["count_all"]
    return counts


def shown_models(visible: VisibilityCache, source: LineKind, ids: Collection[str]) -> dict[str, tuple[str | None, ...]]:
    """List the models whose lines of one kind readers see of these complete videos; None stands for subtitles."""
    newest = visible.models(source, ids)
    return {id_: (None, *newest.get(id_, ())[-1:]) for id_ in ids}


def grouped(batch: pa.RecordBatch, columns: list[str]) -> list[dict[str, Any]]:
    """Count the rows of a batch by some of its columns: `count_all`."""
    rows: list[dict[str, Any]] = (
        pa.Table.from_batches([batch]).group_by(columns).aggregate([([], "count_all")]).to_pylist()
    )
    return rows
