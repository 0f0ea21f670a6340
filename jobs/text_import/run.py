"""Import texts from end to end: match them to videos, make videos for the others, then add all as a stage.

A video that the library lacks gets a row of its own, without frames. If a run is killed, the next one does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from index.library import Library
from index.maintenance.sweep import sweep
from index.rows import FailureRow, VideoRow
from jobs.annotate.run import add
from jobs.annotate.stage import AddReport, VideoOutcome
from jobs.benchmarks.samples import composed
from jobs.text_import.match_videos import known_names, length_s, parts, text_id, text_row, text_uri
from jobs.text_import.stage import ImportedText, Kind
from jobs.text_import.types import ReadFailure, ReadResult, VideoText

VIDEOS_A_COMMIT = 1000


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
    watch: Callable[[int, int, VideoOutcome], None] = lambda done, total, last: None,
) -> ImportResult:
    """Bring captions or transcripts ("speech") into a library, as `read` from `source`, under their writer's name.

    A text belongs to the video whose title, file stem or id is its name; without one, to a new video that has only
    this text. Videos that have text by this writer are left out, unless `replaces`. Bad texts become failure rows.

    Raises LibraryBusy if an ingest or another import is at work, SpaceError or SpaceMismatch.
    """
    with library.lease("ingest", "kinodex import"):
        sweep(library)
        before = library.videos()
        texts, unread = _matched(read, before)
        failed = [_failed(source, each) for each in unread]
        _record_failures(library, kind, source, texts, failed)
        new = _write_rows(library, kind, texts, {row.video_id: row for row in before})
        pending = {row.video_id for row in library.additions.pending(kind, model)}
        left_out = 0 if replaces else len(texts.keys() - pending)
        stage = ImportedText(kind, model, texts, settings, replaces)
        report = add(library, stage, list(texts), watch)
    return ImportResult(replace(report, outcomes=[*failed, *report.outcomes]), new, left_out)


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
            lines = tuple(replace(line, language=None) for line in each.lines)
            each = replace(each, name=whole_name, lines=lines)
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


def _write_rows(library: Library, kind: Kind, texts: Mapping[str, VideoText], held: Mapping[str, VideoRow]) -> int:
    """Make videos for texts that have none, and lengthen those without frames; returns the number of new ones."""
    new = [id_ for id_ in texts if id_ not in held]
    for first in range(0, len(new), VIDEOS_A_COMMIT):
        segments = {id_: parts(texts[id_], kind == "captions") for id_ in new[first : first + VIDEOS_A_COMMIT]}
        library.writer.add_segments(segments)
        fps = float(library.settings.get("fps", 1.0))
        library.writer.complete(
            [text_row(texts[id_], len(each), fps, library.space_name) for id_, each in segments.items()]
        )
    library.writer.complete(
        [
            replace(held[id_], duration_s=length_s(text))
            for id_, text in texts.items()
            if id_ in held and not held[id_].frames and length_s(text) > held[id_].duration_s
        ]
    )
    return len(new)


def _record_failures(
    library: Library, kind: Kind, source: str, texts: Mapping[str, VideoText], failed: Sequence[VideoOutcome]
) -> None:
    """Record texts that could not be read, in place of an earlier import's failures of the source and these videos."""
    before = [row.uri for row in library.ingest_log.failures() if row.uri.startswith(_file_uri(source, ""))]
    library.ingest_log.clear_failures([*before, *(text_uri(text.name) for text in texts.values())], [kind])
    now = datetime.now(UTC)
    library.ingest_log.add_failures(
        [FailureRow(each.uri, kind, each.error_class or "", each.problem or "", 1, now) for each in failed]
    )


def _failed(source: str, unread: ReadFailure) -> VideoOutcome:
    uri = _file_uri(source, unread.where) if unread.name is None else text_uri(unread.name)
    return VideoOutcome("", uri, unread.name or unread.where, 0, unread.message, unread.error_class)


def _file_uri(source: str, file: str) -> str:
    return f"{source}#{file}"
