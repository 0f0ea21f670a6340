"""Scenes and chapters with titles and summaries: by a local model, or by any OpenAI-compatible endpoint.

What is joined to scenes and chapters is found without a model (`pipeline.scenes`). A model then writes of each scene
from the captions, speech and text that the library holds of it, or from some frames where it holds none, and of each
chapter from its scenes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.attempts import Outcome
from kinodex.agent.errors import InvalidReply, NoUsableReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.repetition import check_not_echoed
from kinodex.agent.requests.summarize_part import PartSummary, SummarizePart
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, SegmentRow, TextLine, VideoRow
from kinodex.jobs.add.endpoint import Round, Rounds, Writer, reasons
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stages import Chapters
from kinodex.jobs.library import picture_of, shown_between
from kinodex.jobs.models import hub_for
from kinodex.pipeline.scenes.structure import find_structure


class ChapterWriter(Writer[Chapters]):
    """Titles and summaries of the scenes and chapters of a library."""

    def again(self) -> list[str]:
        """Ids of videos that have summaries and get them again: those with parts without one, or with newer words."""
        scenes, model = self.library.chapters, self.stage.model
        found = scenes.untitled(model) if self.stage.retry_failed else []
        return [*found, *(scenes.outdated(model) if self.stage.renew else ())]

    @property
    def _replaces(self) -> bool:
        """Replace the rows that a video has."""
        return self.stage.retry_failed or self.stage.renew

    def rounds(self, video: VideoRow) -> Rounds:
        """Write of each scene, then of each chapter from what was written of its scenes; one of one scene has that."""
        library, model = self.library, self.stage.model
        film = read_film(library, video)
        scenes = yield Round(len(film.scenes), partial(_scene_requests, library, film, self.stage.frames_a_scene))
        several = [chapter for chapter in film.chapters if len(chapter.children) > 1]
        replies = yield Round(
            len(several), lambda numbers: [_chapter_request(film, several[n], scenes) for n in numbers]
        )
        outcomes = dict(zip((chapter.number for chapter in several), replies, strict=True))
        chapters = [outcomes.get(each.number, scenes[each.children[0]]) for each in film.chapters]
        pairs = [*zip(film.scenes, scenes, strict=True), *zip(film.chapters, chapters, strict=True)]
        held = library.chapters.rows(video.video_id) if self._replaces else []
        before = {_place(row): row for row in held if row.model == model}
        rows = [_row(film, part, outcome.reply, model) for part, outcome in pairs]
        if self._replaces and not any(row.title for row in rows) and library.chapters.has_titles(video, model):
            why = "no scene or chapter got a title that could be used; those that were there before stay"
            return AddedRows((), 0, failed=NoUsableReply(why))
        rows = [row if row.title else before.get(_place(row), row) for row in rows]
        return AddedRows(rows, len(rows), _problem([*scenes, *chapters], [*scenes, *replies]))

    def load(self) -> Callable[[Sequence[Request[Any]]], list[Outcome[Any]]]:
        """Load the local model; one that reads no pictures has nothing to say of a part without words."""
        from kinodex.pipeline.scenes.writer import PROMPT, PartLines, load_writer

        with hub_for(self.stage.model):
            writer = load_writer(self.stage.model, self.stage.device, self.stage.max_new_tokens)
        instructions = PROMPT.read_text(encoding="utf-8")

        def replies(requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
            asked = cast(Sequence[SummarizePart], requests)
            parts = [
                PartLines(
                    tuple(note.text for note in request.notes),
                    tuple(map(picture_of, request.frames)),
                    request.part.end_s - request.part.start_s,
                )
                for request in asked
            ]
            return [
                NOTHING_KNOWN if reply is None else Outcome(read_entry(request, *reply, instructions))
                for request, reply in zip(asked, writer.write(parts), strict=True)
            ]

        return replies

    def write(self, rows: Mapping[str, Any]) -> None:
        if self._replaces:
            self.library.additions.discard(self.stage.name, self.stage.model, *rows)
        self.library.chapters.add(rows)


# The scenes and chapters of a video in a library, and what the library knows of each in words.

Level = Literal["scene", "chapter"]
MOST_CHARACTERS = 6000
"""Of the words that a model is given of one part, some 1,500 tokens; of more, lines at even distances are taken."""
LONGEST_LINE = 400


@dataclass(frozen=True, slots=True)
class FilmPart:
    """A scene or chapter `[start_s, end_s)`: its number in its level, its segments, and a chapter's scenes."""

    level: Level
    number: int
    start_s: float
    end_s: float
    first_segment: int
    segments: int
    children: range = range(0)

    @property
    def end_segment(self) -> int:
        return self.first_segment + self.segments


@dataclass(frozen=True, slots=True)
class Film:
    """Scenes and chapters of a video, and the notes on each scene: captions, and what is said and written meanwhile."""

    video: VideoRow
    scenes: tuple[FilmPart, ...]
    chapters: tuple[FilmPart, ...]
    notes: tuple[tuple[Note, ...], ...]

    @property
    def parts(self) -> int:
        return len(self.scenes) + len(self.chapters)


def read_film(library: Library, video: VideoRow) -> Film:
    """Find the scenes and chapters of a video by its stored vectors and words; no model is needed."""
    segments = library.segments(video.video_id)
    notes = _notes(library, video, segments)
    spans_s = [(segment.start_s, segment.end_s) for segment in segments]
    texts = [" ".join(note.text for note in each) for each in notes]
    lines_s = [(line.start_s, line.end_s) for line in library.speech(video.video_id)]
    structure = find_structure(spans_s, _pictures(library, video, spans_s), texts, lines_s)
    scenes = tuple(
        _part("scene", number, segments[first:end], range(0))
        for number, (first, end) in enumerate(pairwise([*structure.scenes, len(segments)]))
    )
    chapters = tuple(
        _part("chapter", number, segments[scenes[first].first_segment : scenes[end - 1].end_segment], range(first, end))
        for number, (first, end) in enumerate(pairwise([*structure.chapters, len(scenes)]))
    )
    return Film(video, scenes, chapters, tuple(_of_scene(scene, notes) for scene in scenes))


def thinned(notes: Sequence[Note], most_characters: int = MOST_CHARACTERS) -> tuple[Note, ...]:
    """Take notes at even distances, so many that their texts stay within a number of characters; at least one."""
    length = sum(len(note.text) for note in notes)
    if length <= most_characters:
        return tuple(notes)
    kept = max(1, int(len(notes) * most_characters / length))
    return tuple(notes[int((number + 0.5) * len(notes) / kept)] for number in range(kept))


def _part(level: Level, number: int, segments: Sequence[SegmentRow], children: range) -> FilmPart:
    first, last = segments[0], segments[-1]
    return FilmPart(level, number, first.start_s, last.end_s, first.segment_no, len(segments), children)


def _of_scene(scene: FilmPart, notes: Sequence[Sequence[Note]]) -> tuple[Note, ...]:
    """Notes of the segments of a scene; what stands there again and again is said once."""
    first: dict[tuple[str, str], Note] = {}
    for note in chain.from_iterable(notes[scene.first_segment : scene.end_segment]):
        first.setdefault((note.source, note.text), note)
    return tuple(first.values())


def _notes(library: Library, video: VideoRow, segments: Sequence[SegmentRow]) -> list[list[Note]]:
    """Take notes on each segment: its caption, and of each other kind of lines those at its time, as one note."""
    starts_s = [segment.start_s for segment in segments]
    notes: list[list[Note]] = [
        [_note(video, segment.start_s, segment.end_s, "captions", segment.caption)] if segment.caption else []
        for segment in segments
    ]
    for kind in (each for each in LINE_KINDS if each != "captions"):
        together: dict[int, list[TextLine]] = {}
        for line in library.lines.rows(video.video_id, [kind]):
            at = bisect_right(starts_s, (line.start_s + line.end_s) / 2) - 1
            together.setdefault(max(at, 0), []).append(line)
        for at, each in together.items() if segments else ():
            text = " ".join(dict.fromkeys(line.text for line in each))
            notes[at].append(_note(video, each[0].start_s, max(line.end_s for line in each), kind, text))
    return notes


def _note(video: VideoRow, start_s: float, end_s: float, source: str, text: str) -> Note:
    return Note(video.video_id, start_s, end_s, source, text[:LONGEST_LINE])


def _pictures(library: Library, video: VideoRow, spans_s: Sequence[tuple[float, float]]) -> NDArray[np.float32] | None:
    """The mean vector of the frames of each segment, unit length; zeros where none is stored."""
    if not video.frames or not spans_s:
        return None
    stored = library.vectors(video.video_id)
    bounds = np.searchsorted(stored.time_s, [start_s for start_s, _ in spans_s])
    means = np.zeros((len(spans_s), stored.vectors.shape[1]), np.float32)
    for at, (first, end) in enumerate(pairwise([*bounds, len(stored.time_s)])):
        if end > first:
            mean = stored.vectors[first:end].astype(np.float32).mean(axis=0)
            means[at] = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return means


# Titles and summaries of the parts of a film: scenes first, then chapters from what was written of their scenes.

FEW_WORDS = 4
"""A scene of which fewer words are known is shown to the model by some frames."""


NOTHING_KNOWN: Outcome[PartSummary] = Outcome(None)
"""Of a part of which no word is known, by a model that reads no pictures."""


def _place(row: ChapterRow) -> tuple[Any, ...]:
    return row.level, row.number, row.start_s, row.end_s


def _problem(outcomes: Sequence[Outcome[PartSummary]], asked: Sequence[Outcome[PartSummary]]) -> str | None:
    missing = sum(each.reply is None for each in outcomes)
    if not missing:
        return None
    unknown = sum(each is NOTHING_KNOWN for each in outcomes)
    why = f"; of {unknown} nothing is known in words, and the model reads no pictures: add captions first"
    told = f"{missing} of {len(outcomes)} scenes and chapters got no title that could be used"
    return f"{told}{why if unknown else ''}{reasons(asked)}"


def _row(film: Film, part: FilmPart, text: PartSummary | None, model: str) -> ChapterRow:
    span = part.start_s, part.end_s, part.first_segment, part.segments
    title, summary = ("", "") if text is None else (plain_line(text.title), plain_line(text.summary))
    return ChapterRow(film.video.video_id, part.level, part.number, *span, title, summary, model)


def _scene_requests(library: Library, film: Film, frames_a_scene: int, numbers: Sequence[int]) -> list[SummarizePart]:
    scenes = [film.scenes[number] for number in numbers]
    known = {scene.number: sum(len(note.text.split()) for note in film.notes[scene.number]) for scene in scenes}
    wordless = [scene for scene in scenes if film.video.frames and known[scene.number] < FEW_WORDS]
    shown = shown_between(library, film.video, [(scene.start_s, scene.end_s) for scene in wordless], frames_a_scene)
    frames = {scene.number: some for scene, some in zip(wordless, shown, strict=True)}
    return [
        SummarizePart(
            part=Segment(scene.number, film.video.video_id, scene.start_s, scene.end_s),
            level="scene",
            notes=thinned(film.notes[scene.number]),
            frames=frames.get(scene.number, ()),
        )
        for scene in scenes
    ]


def _chapter_request(film: Film, chapter: FilmPart, scenes: Sequence[Outcome[PartSummary]]) -> SummarizePart:
    """Make the request for a chapter from its scenes; a scene without a title is given by its own lines."""
    video_id = film.video.video_id
    notes: list[Note] = []
    for number in chapter.children:
        scene, text = film.scenes[number], scenes[number].reply
        if text is not None:
            told = f"{plain_line(text.title)}. {plain_line(text.summary)}"
            notes.append(Note(video_id, scene.start_s, scene.end_s, "scene", told))
        else:
            notes += thinned(film.notes[number], 400)
    part = Segment(chapter.number, video_id, chapter.start_s, chapter.end_s)
    return SummarizePart(part=part, level="chapter", notes=thinned(notes))


# What a local model writes of a part, in its own words.

MARKS = "#*_\"'`“”: "
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
HEADING = re.compile(r"\W*(?:title|summary)\W*?:\s*", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]")


def read_entry(request: SummarizePart, text: str, is_whole: bool = True, instructions: str = "") -> PartSummary | None:
    """Read what a local model wrote: a title in its first line, the summary after it.

    Headings ("Title:") and marks are taken off, and the sentence that breaks off. A reply of one line, a refusal, a
    very long title, a loop and a repetition of the instructions are unusable.
    """
    text = text if is_whole else _whole_sentences(text)
    lines = [line for each in text.splitlines() if (line := HEADING.sub("", each, count=1).strip(MARKS))]
    reply = PartSummary(title=lines[0] if lines else "", summary=" ".join(lines[1:]))
    try:
        request.check(reply)
        check_not_echoed(text, instructions)
    except InvalidReply:
        return None
    return reply


def plain_line(text: str) -> str:
    """A text as one line without control characters: a title is a line of a player's list, and of a WebVTT cue."""
    return " ".join(CONTROL.sub(" ", text).split())


def _whole_sentences(text: str) -> str:
    """Leave out what follows the last end of a sentence; a line before the last is whole without one."""
    before, line_end, last = text.rstrip().rpartition("\n")
    ends = [found.end() for found in SENTENCE_END.finditer(last)]
    return f"{before}{line_end}{last[: ends[-1] if ends else 0]}"
