"""Import of texts from end to end: they are matched to videos, and added; the others get videos of their own.

A video that the library lacks gets a row of its own, without frames. If a run is killed, the next one does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kinodex.index.library import Library
from kinodex.index.sweep import sweep
from kinodex.jobs.add.run import AddReport, Watch, add, record_failures
from kinodex.jobs.text_import.addition import ImportedText, Kind
from kinodex.jobs.text_import.text_rows import write_rows
from kinodex.jobs.text_import.video_text import ReadResult
from kinodex.jobs.text_import.videos import failed_outcome, match_texts, text_uri


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
        texts, unread = match_texts(read, before)
        failed = [failed_outcome(source, each) for each in unread]
        # In place of an earlier import's failures of the source and these videos.
        past = [row.uri for row in library.ingest_log.failures() if row.uri.startswith(f"{source}#")]
        library.ingest_log.clear_failures([*past, *(text_uri(text.name) for text in texts.values())], [kind])
        record_failures(library, kind, failed)
        new = write_rows(library, kind, texts, {row.video_id: row for row in before})
        pending = {row.video_id for row in library.additions.pending(kind, model)}
        left_out = 0 if replaces else len(texts.keys() - pending)
        report = add(library, ImportedText(kind, model, texts, settings, library, replaces), list(texts), watch)
    return ImportResult(replace(report, outcomes=[*failed, *report.outcomes]), new, left_out)
