"""Titles and summaries of the parts of a film: scenes first, then chapters from what was written of their scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar

from agent.core.protocol import ShownFrame, Usage
from agent.core.question import Note, Segment
from agent.errors import ModelRejected
from agent.requests.scenes import SummarizePart
from index.library import Library
from index.rows import SceneRow
from jobs.annotate.scenes.film import Film, FilmPart, thinned
from jobs.annotate.stage import NO_COST, StageRows
from jobs.stored_frames import frames_between

FEW_WORDS = 4
"""A scene of which fewer words are known is shown to the model by some frames."""


class Written(NamedTuple):
    """Title and summary of a part; both are empty where the reply could not be used, or the request was refused."""

    title: str = ""
    text: str = ""
    usage: Usage = NO_COST
    refused: ModelRejected | None = None
    nothing_known: bool = False
    """No word is known of the part, and the model reads no pictures."""


Write = Callable[[Sequence[SummarizePart]], list[Written]]
"""Writes some parts at once, in order."""
Item = TypeVar("Item")


@dataclass(slots=True)
class Contents:
    """Table of contents of a film while it is written: a text for each scene, then for each chapter."""

    film: Film
    scenes: list[Written] = field(default_factory=list)
    chapters: list[Written] = field(default_factory=list)
    failed: ModelRejected | None = None
    """The last refusal, where all requests of a batch were refused before anything was written."""

    @property
    def written(self) -> list[Written]:
        return [*self.scenes, *self.chapters]


def write_contents(library: Library, film: Film, write: Write, frames_a_scene: int, at_once: int) -> Contents:
    """Have every part of a film written, some at once; a chapter of one scene has that scene's text.

    Nothing more is asked for once a batch has `failed`.
    """
    contents = Contents(film)
    for some in _batches(range(len(film.scenes)), at_once):
        contents.scenes += write(_scene_requests(library, film, some, frames_a_scene))
        refused = [each.refused for each in contents.scenes if each.refused is not None]
        if refused and len(refused) == len(contents.scenes):
            contents.failed = refused[-1]
            return contents
    several = [chapter for chapter in film.chapters if len(chapter.children) > 1]
    replies: dict[int, Written] = {}
    for chapters in _batches(several, at_once):
        written = write([_chapter_request(contents, chapter) for chapter in chapters])
        replies |= {chapter.number: text for chapter, text in zip(chapters, written, strict=True)}
    for chapter in film.chapters:
        alone = contents.scenes[chapter.children[0]]
        same = Written(alone.title, alone.text, nothing_known=alone.nothing_known)
        contents.chapters.append(replies.get(chapter.number) or same)
    return contents


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def stage_rows(contents: Contents, model: str, held: Iterable[SceneRow] = ()) -> StageRows:
    """Rows of what was written, and the problem of the parts without a title.

    A part that got no title keeps the row that it has among those `held`.
    """
    film, usage = contents.film, sum((text.usage for text in contents.written), NO_COST)
    if contents.failed is not None:
        return StageRows((), 0, usage=usage, failed=contents.failed)
    pairs = [*zip(film.scenes, contents.scenes, strict=True), *zip(film.chapters, contents.chapters, strict=True)]
    before = {_place(row): row for row in held}
    rows = [_row(film, part, text, model) for part, text in pairs]
    rows = [row if row.title else before.get(_place(row), row) for row in rows]
    return StageRows(rows, len(rows), _problem(contents.written), usage)


def _place(row: SceneRow) -> tuple[Any, ...]:
    return row.level, row.number, row.start_s, row.end_s


def _problem(written: Sequence[Written]) -> str | None:
    missing = sum(not each.title for each in written)
    if not missing:
        return None
    refused = [each.refused for each in written if each.refused is not None]
    why = f"; requests refused: {len(refused)}, the last because {refused[-1]}" if refused else ""
    unknown = sum(each.nothing_known for each in written)
    if unknown:
        why = f"; of {unknown} nothing is known in words, and the model reads no pictures: add captions first{why}"
    return f"{missing} of {len(written)} scenes and chapters got no title that could be used{why}"


def _row(film: Film, part: FilmPart, text: Written, model: str) -> SceneRow:
    span = part.start_s, part.end_s, part.first_segment, part.segments
    return SceneRow(film.video.video_id, part.level, part.number, *span, text.title, text.text, model)


def _scene_requests(library: Library, film: Film, numbers: Sequence[int], frames_a_scene: int) -> list[SummarizePart]:
    scenes = [film.scenes[number] for number in numbers]
    wordless = [scene for scene in scenes if _has_few_words(film.notes[scene.number])] if film.video.frames else []
    spans_s = [(scene.start_s, scene.end_s) for scene in wordless]
    shown = frames_between(library, film.video, spans_s, frames_a_scene)
    frames = {scene.number: some for scene, some in zip(wordless, shown, strict=True)}
    return [
        SummarizePart(
            part=Segment(scene.number, film.video.video_id, scene.start_s, scene.end_s),
            level="scene",
            notes=thinned(film.notes[scene.number]),
            frames=tuple(ShownFrame(**asdict(frame)) for frame in frames.get(scene.number, ())),
        )
        for scene in scenes
    ]


def _has_few_words(notes: Sequence[Note]) -> bool:
    return sum(len(note.text.split()) for note in notes) < FEW_WORDS


def _chapter_request(contents: Contents, chapter: FilmPart) -> SummarizePart:
    """Make the request for a chapter from its scenes; a scene without a title is given by its own lines."""
    video_id = contents.film.video.video_id
    notes: list[Note] = []
    for number in chapter.children:
        scene, text = contents.film.scenes[number], contents.scenes[number]
        if text.title:
            notes.append(Note(video_id, scene.start_s, scene.end_s, "scene", f"{text.title}. {text.text}"))
        else:
            notes += thinned(contents.film.notes[number], 400)
    part = Segment(chapter.number, video_id, chapter.start_s, chapter.end_s)
    return SummarizePart(part=part, level="chapter", notes=thinned(notes))
