"""Scenes and chapters with titles and summaries: by a local model, or by any OpenAI-compatible endpoint.

What is joined to scenes and chapters is found without a model (`pipeline.scenes`). A model then writes of each scene
from the captions, speech and text that the library holds of it, or from some frames where it holds none, and of each
chapter from its scenes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from kinodex.agent.attempts import Outcome
from kinodex.agent.errors import NoUsableReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.summarize_part import PartSummary, SummarizePart
from kinodex.index.errors import NoVectors
from kinodex.index.library import Library
from kinodex.index.rows import ChapterRow, VideoRow
from kinodex.jobs.add.film_parts import Film, FilmPart, read_film, thinned
from kinodex.jobs.add.part_replies import plain_line, read_entry
from kinodex.jobs.add.rounds import Round, Rounds, reasons
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stages import Chapters
from kinodex.jobs.add.writer import Writer
from kinodex.jobs.library import picture_of, shown_between
from kinodex.jobs.models import hub_for

log = logging.getLogger(__name__)

FEW_WORDS = 4
"""A scene of which fewer words are known is shown to the model by some frames."""
NOTHING_KNOWN: Outcome[PartSummary] = Outcome(None)
"""Of a part of which no word is known, by a model that reads no pictures."""


class ChapterWriter(Writer[Chapters]):
    """Titles and summaries of the scenes and chapters of a library."""

    def prepare(self) -> None:
        """Say that pictures are not compared, in a library without a space."""
        if not self.library.fingerprint.has_vectors:
            why = NoVectors.of(self.library.uri)
            log.warning("note: scenes and chapters are found by words alone: %s", why)

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
