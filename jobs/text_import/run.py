"""An import from end to end: texts matched to videos, videos made for the others, then all of it added as a stage is.

A video that the library lacks gets a row of its own, without frames. What is killed in between is done by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from index.library import Library
from index.rows import FailureRow, VideoRow
from jobs.annotate.run import add
from jobs.annotate.stage import Added, AddReport
from jobs.text_import.match_videos import known_names, length_s, parts, text_id, text_row, text_uri
from jobs.text_import.stage import ImportedText, Kind
from jobs.text_import.types import Read, Unread, VideoText

VIDEOS_A_COMMIT = 1000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did; `made` videos are new, `left_out` had text by this writer before."""

    report: AddReport
    made: int
    left_out: int


def import_text(
    library: Library,
    kind: Kind,
    model: str,
    source: str,
    read: Iterable[Read],
    settings: Mapping[str, object],
    anew: bool = False,
    watch: Callable[[int, int, Added], None] = lambda done, total, last: None,
) -> Imported:
    """Bring captions or transcripts ("speech") into a library, as `read` from `source`, under their writer's name.

    A text is of the video whose title, file stem or id is its name; without one, of a new video that is known by its
    text alone. Videos that have text by this writer are left out, unless `anew`. Bad texts become failure rows.

    Raises LibraryBusy if an ingest or another import is at work, SpaceError or SpaceMismatch.
    """
    with library.lease("ingest", "kinodex import"):
        library.sweep()
        before = library.videos()
        texts, unread = _matched(read, before)
        failed = [_failed(source, each) for each in unread]
        _tell(library, kind, source, texts, failed)
        new = _write_rows(library, kind, texts, {row.video_id: row for row in before})
        pending = {row.video_id for row in library.pending(kind, model)}
        left_out = 0 if anew else len(texts.keys() - pending)
        stage = ImportedText(kind, model, texts, settings, anew)
        report = add(library, stage, list(texts), watch)
    return Imported(replace(report, outcomes=[*failed, *report.outcomes]), new, left_out)


def _matched(read: Iterable[Read], videos: Sequence[VideoRow]) -> tuple[dict[str, VideoText], list[Unread]]:
    """Texts by the id of their video, and what is nobody's, or a second text of one video."""
    names = known_names(videos)
    texts: dict[str, VideoText] = {}
    unread: list[Unread] = []
    for each in read:
        if isinstance(each, Unread):
            unread.append(each)
            continue
        ids = sorted(names.get(each.name, {text_id(each.name)}))
        if len(ids) > 1:
            message = f"{each.name}: got a text for {len(ids)} videos of that name ({', '.join(ids)}); name it by id"
            unread.append(Unread(each.name, each.name, "UnknownVideo", message))
        elif ids[0] in texts:
            message = f"{each.name}: got a second text for this video; join them, or import one under another --model"
            unread.append(Unread(each.name, each.name, "RepeatedVideo", message))
        else:
            texts[ids[0]] = each
    return texts, unread


def _write_rows(library: Library, kind: Kind, texts: Mapping[str, VideoText], held: Mapping[str, VideoRow]) -> int:
    """Make videos for texts that have none, and let those without frames last as long as their text; says how many."""
    new = [id_ for id_ in texts if id_ not in held]
    for first in range(0, len(new), VIDEOS_A_COMMIT):
        segments = {id_: parts(texts[id_], kind == "captions") for id_ in new[first : first + VIDEOS_A_COMMIT]}
        library.add_segments(segments)
        fps = float(library.settings.get("fps", 1.0))
        library.complete([text_row(texts[id_], len(each), fps, library.space_name) for id_, each in segments.items()])
    library.complete(
        [
            replace(held[id_], duration_s=length_s(text))
            for id_, text in texts.items()
            if id_ in held and not held[id_].frames and length_s(text) > held[id_].duration_s
        ]
    )
    return len(new)


def _tell(library: Library, kind: Kind, source: str, texts: Mapping[str, VideoText], failed: Sequence[Added]) -> None:
    """Record what could not be read, in place of what an earlier import said of the source and of these videos."""
    before = [row.uri for row in library.failures() if row.uri.startswith(_file_uri(source, ""))]
    library.clear_failures([*before, *(text_uri(text.name) for text in texts.values())], [kind])
    now = datetime.now(UTC)
    library.add_failures(
        [FailureRow(each.uri, kind, each.error_class or "", each.problem or "", 1, now) for each in failed]
    )


def _failed(source: str, unread: Unread) -> Added:
    uri = _file_uri(source, unread.where) if unread.name is None else text_uri(unread.name)
    return Added("", uri, unread.name or unread.where, 0, unread.message, unread.error_class)


def _file_uri(source: str, file: str) -> str:
    return f"{source}#{file}"
