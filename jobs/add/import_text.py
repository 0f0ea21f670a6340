"""Import texts from end to end: match them to videos, make videos for the others, then add all as an addition.

A video that the library lacks gets a row of its own, without frames. If a run is killed, the next one does the rest.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, Self

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.sweep import sweep
from kinodex.index.text import composed
from kinodex.jobs.add.captions import Caption, text_vectors
from kinodex.jobs.add.run import AddedRows, AddReport, VideoOutcome, Watch, add, record_failures
from kinodex.jobs.add.text_files import ReadFailure, ReadResult, TextLine, VideoText
from kinodex.jobs.library import batched

VIDEOS_A_COMMIT = 1000
Kind = Literal["captions", "speech"]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import; `made` videos are new, `left_out` had text by this writer before."""

    report: AddReport
    made: int
    left_out: int


def import_text(
    library: Library,
    kind: Kind,
    model: str,
    source: str,
    read: Iterable[ReadResult],
    settings: Mapping[str, object],
    replaces: bool = False,
    watch: Watch = lambda done, total, last: None,
) -> ImportResult:
    """Bring captions or transcripts ("speech") into a library, as `read` from `source`, under their writer's name.

    A text belongs to the video whose title, file stem or id is its name; without one, to a new video that has only
    this text. Videos that have text by this writer are left out, unless `replaces`. Bad texts become failure rows.
    """
    with library.lease("ingest", "kinodex import"):
        sweep(library)
        before = library.videos()
        texts, unread = _matched(read, before)
        failed = [_failed(source, each) for each in unread]
        # In place of an earlier import's failures of the source and these videos.
        past = [row.uri for row in library.ingest_log.failures() if row.uri.startswith(f"{source}#")]
        library.ingest_log.clear_failures([*past, *(text_uri(text.name) for text in texts.values())], [kind])
        record_failures(library, kind, failed)
        new = _write_rows(library, kind, texts, {row.video_id: row for row in before})
        pending = {row.video_id for row in library.additions.pending(kind, model)}
        left_out = 0 if replaces else len(texts.keys() - pending)
        report = add(library, ImportedText(kind, model, texts, settings, library, replaces), list(texts), watch)
    return ImportResult(replace(report, outcomes=[*failed, *report.outcomes]), new, left_out)


# Texts and the videos that they belong to.


def _matched(read: Iterable[ReadResult], videos: Sequence[VideoRow]) -> tuple[dict[str, VideoText], list[ReadFailure]]:
    """Match texts to the ids of videos; failures are texts of several videos, and second texts of one."""
    names = known_names(videos)
    texts: dict[str, VideoText] = {}
    unread: list[ReadFailure] = []
    for each in read:
        if isinstance(each, ReadFailure):
            unread.append(each)
            continue
        whole_name = composed(each.whole_name)
        if whole_name in names:
            each = replace(each, name=whole_name, lines=tuple(replace(line, language=None) for line in each.lines))
        each = replace(each, name=composed(each.name))
        ids = sorted(names.get(each.name, {text_id(each.name)}))
        if len(ids) > 1:
            message = f"{each.name}: got a text for {len(ids)} videos of that name ({', '.join(ids)}); name it by id"
            unread.append(ReadFailure(each.name, each.name, "UnknownVideo", message))
        elif ids[0] in texts:
            message = f"{each.name}: got a second text for this video; join them, or import one under another --model"
            unread.append(ReadFailure(each.name, each.name, "RepeatedVideo", message))
        else:
            texts[ids[0]] = each
    return texts, unread


def known_names(videos: Iterable[VideoRow]) -> Mapping[str, set[str]]:
    """Ids of videos by each of their names: title, stem of the file, id, as `composed` writes them."""
    names: dict[str, set[str]] = defaultdict(set)
    for row in videos:
        for name in (row.title, PurePosixPath(row.uri).stem, row.video_id):
            names[composed(name)].add(row.video_id)
    return names


def text_uri(name: str) -> str:
    """Make the URI of a video that has only a text; its id is the hash of it."""
    return f"imported:{name}"


def text_id(name: str) -> str:
    return hashlib.sha256(text_uri(name).encode()).hexdigest()[:32]


def _failed(source: str, unread: ReadFailure) -> VideoOutcome:
    uri = f"{source}#{unread.where}" if unread.name is None else text_uri(unread.name)
    return VideoOutcome("", uri, unread.name or unread.where, 0, unread.message, unread.error_class)


# Rows of videos that have only a text.


class Part(NamedTuple):
    """Segment of a video without frames."""

    start_s: float
    end_s: float
    kind: str


def _write_rows(library: Library, kind: Kind, texts: Mapping[str, VideoText], held: Mapping[str, VideoRow]) -> int:
    """Make videos for texts that have none, and lengthen those without frames; returns the number of new ones."""
    new = [id_ for id_ in texts if id_ not in held]
    fps = float(library.settings.get("fps", 1.0))
    for some in batched(new, VIDEOS_A_COMMIT):
        segments = {id_: parts(texts[id_], kind == "captions") for id_ in some}
        library.writer.add_segments(segments)
        rows = [_text_row(texts[id_], len(each), fps, library.space_name) for id_, each in segments.items()]
        library.writer.complete(rows)
    longer = [
        replace(held[id_], duration_s=length_s(text))
        for id_, text in texts.items()
        if id_ in held and not held[id_].frames and length_s(text) > held[id_].duration_s
    ]
    library.writer.complete(longer)
    return len(new)


def _text_row(text: VideoText, segments: int, sample_fps: float, space: str) -> VideoRow:
    """Make the row of a video without frames; it ends with its text unless the text holds a duration."""
    return VideoRow(
        video_id=text_id(text.name),
        uri=text_uri(text.name),
        title=text.name,
        start_s=0.0,
        duration_s=length_s(text),
        fps=None,
        width_px=0,
        height_px=0,
        codec="text",
        frames=0,
        segments=segments,
        speech_lines=0,
        decode_errors=0,
        sample_fps=sample_fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def length_s(text: VideoText) -> float:
    return text.duration_s or max(line.end_s for line in text.lines)


def parts(text: VideoText, by_line: bool) -> list[Part]:
    """Make the segments of a video without frames: one a caption, or fixed windows of a transcript."""
    if by_line:
        return [Part(line.start_s, line.end_s, "caption") for line in text.lines]
    end_s = length_s(text)
    count = max(1, math.ceil(round(end_s / text.window_s, 6)))
    return [Part(n * text.window_s, min((n + 1) * text.window_s, end_s), "window") for n in range(count)]


# Imported text as an addition.


@dataclass(frozen=True, slots=True)
class ImportedText:
    """Texts of videos by id. `model` is their writer; with `replaces` its texts of before are deleted first."""

    name: Kind
    model: str
    texts: Mapping[str, VideoText]
    settings: Mapping[str, Any]
    library: Library
    replaces: bool = False
    runs_on: str = "cpu"

    @contextmanager
    def open(self, library: Library) -> Iterator[Self]:
        """Load nothing: the texts are there."""
        yield self

    def share(self, processes: int) -> Self:
        return self

    def again(self) -> Collection[str]:
        return ()

    def prepare(self) -> None:
        if self.name == "captions":
            _ = self.library.text_tower
        if self.replaces:
            self.library.additions.discard(self.name, self.model, *self.texts)

    def rows_of(self, video: VideoRow) -> AddedRows:
        text = self.texts[video.video_id]
        begins_s = min(video.start_s, 0.0) if self.name == "speech" else video.start_s  # pictures may come later
        lines = _within(text.lines, begins_s, video.end_s)
        left_out = len(text.lines) - len(lines)
        ends_s = f"{begins_s:g} s to {video.end_s:g} s"
        outside = f"{left_out} of {len(text.lines)} lines lie outside it, {ends_s}" if left_out else None
        problem = "; ".join(filter(None, [text.problem, outside])) or None
        rows: Sequence[Any] = lines if self.name == "speech" else _captions(self.library, lines)
        return AddedRows(rows, len(rows), problem)

    def write(self, rows: Mapping[str, Any]) -> None:
        if self.name == "captions":
            self.library.additions.add_captions(rows, self.model)
        else:
            self.library.additions.add_speech(rows, self.model, "imported")


def _captions(library: Library, lines: Sequence[TextLine]) -> list[Caption]:
    vectors = text_vectors(library, [line.text for line in lines])
    return [
        Caption(number, line.start_s, line.end_s, line.text, line.confidence, vector)
        for number, (line, vector) in enumerate(zip(lines, vectors, strict=True))
    ]


def _within(lines: Sequence[TextLine], start_s: float, end_s: float) -> list[TextLine]:
    """Cut lines to `[start_s, end_s)`, without those outside it."""
    return [
        replace(each, start_s=max(each.start_s, start_s), end_s=min(each.end_s, end_s))
        for each in lines
        if each.start_s < end_s and (start_s < each.end_s or start_s <= each.start_s)
    ]
