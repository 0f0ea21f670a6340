"""Moments chosen for an export: by a search, traces, SQL, rows of the library, or ranges of a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.traces.trace import read_trace
from kinodex.index.library import Library
from kinodex.index.rows import Scope, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.library_moments import ROWS
from kinodex.jobs.export.moment_rule import AS_FOUND, PLAYED, MomentRule, arranged
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.range_files import ranges_of_sql, read_ranges


@dataclass(frozen=True, slots=True)
class MomentChoice:
    """Choice of moments, at most one of `ranges`, `search`, `traces`, `sql` and `rows`; videos and times limit all."""

    ranges: Path | None = None
    search: str | None = None
    hits: int = 10
    traces: tuple[Path, ...] = ()
    sql: str | None = None
    rows: str | None = None
    videos: tuple[str, ...] = ()
    where: str | None = None
    """Only of videos for which this condition holds."""
    start_s: float | None = None
    end_s: float | None = None
    label: str = ""
    pad_s: float | None = None
    join_s: float | None = None
    snap: bool = False

    def rule(self, is_watched: bool) -> MomentRule:
        """Return the rule that is asked for; hits and evidence that are to be watched are `PLAYED` without one."""
        usual = PLAYED if is_watched and (self.search is not None or self.traces) else AS_FOUND
        pad_s = usual.pad_s if self.pad_s is None else self.pad_s
        return MomentRule(pad_s, usual.join_s if self.join_s is None else self.join_s, self.snap)


def choose_moments(
    library: Library, choice: MomentChoice, usual_rows: str | None, is_watched: bool = False
) -> list[Moment]:
    """Find the moments of a choice; without any, those of `usual_rows` of its videos.

    Hits come best first, ranges and evidence in their order, rows by video and time; `is_watched`: for people who watch
    them (see `MomentChoice.rule`). Raises UsageError for a choice that makes no sense or finds nothing.
    """
    _check(choice, usual_rows)
    found = arranged(list(_found(library, choice, usual_rows)), choice.rule(is_watched), library.segments)
    limited = [cut for moment in found if (cut := moment.within(choice.start_s, choice.end_s))]
    if not limited:
        unsearched = None if choice.search is None else library.incomparable(choice.search)
        why = "" if unsearched is None else f"; {unsearched}"
        raise UsageError(f"nothing was found to export: no such moment lies in these videos and times{why}")
    return limited


def _check(choice: MomentChoice, usual_rows: str | None) -> None:
    named = {"--ranges": choice.ranges, "--search": choice.search, "--trace": choice.traces or None}
    named |= {"--from-sql": choice.sql, "--of": choice.rows}
    given = [name for name, value in named.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"got {' and '.join(given)}; give one of them")
    if choice.rows is not None and choice.rows not in ROWS:
        raise UsageError(f"got --of {choice.rows}; it is one of {', '.join(ROWS)}")
    if choice.start_s is not None and choice.end_s is not None and choice.start_s >= choice.end_s:
        raise UsageError(f"got --from {choice.start_s:g} and --to {choice.end_s:g}; give a --to after it")
    if not 0 <= (choice.pad_s or 0.0) < math.inf:
        raise UsageError(f"got --pad {choice.pad_s:g}; give the seconds to add before and after each, 0 or more")
    if not math.isfinite(choice.join_s or 0.0):
        raise UsageError(f"got --join {choice.join_s:g}; give the most seconds between those that become one, or -1")
    if choice.search is not None and not choice.search.strip():
        raise UsageError("got an empty --search; give some words to look for")
    if not given and not _is_range(choice) and usual_rows is None:
        raise UsageError(
            "got no moments; give --ranges FILE, --search WORDS, --trace FILE, --from-sql SELECT, --video NAME "
            f"--from S --to S, or --of {'|'.join(ROWS)}"
        )


def _is_range(choice: MomentChoice) -> bool:
    return bool(choice.videos) and (choice.start_s is not None or choice.end_s is not None)


def _found(library: Library, choice: MomentChoice, usual_rows: str | None) -> Iterator[Moment]:
    whole, library = library, library.where(choice.where)
    videos = library.select(choice.videos)
    if choice.ranges is not None:
        yield from _among(read_ranges(choice.ranges, whole), videos)
    elif choice.sql is not None:
        yield from _among(ranges_of_sql(choice.sql, whole), videos)
    elif choice.traces:
        for trace in choice.traces:
            yield from _among(evidence(whole, read_trace(trace), str(trace)), videos)
    elif choice.search is not None:
        yield from _search(library, choice)
    elif choice.rows is None and videos is not None and _is_range(choice):
        yield from (Moment(each, each.start_s, each.end_s, choice.label) for each in videos)
    else:
        for video in library.videos() if videos is None else videos:
            yield from ROWS[choice.rows or usual_rows or "videos"](library, video)


def _among(moments: Sequence[Moment], videos: Sequence[VideoRow] | None) -> list[Moment]:
    ids = None if videos is None else {video.video_id for video in videos}
    return [moment for moment in moments if ids is None or moment.video.video_id in ids]


def _search(library: Library, choice: MomentChoice) -> Iterator[Moment]:
    words, ids = choice.search or "", library.ids_named(choice.videos)
    scope, vector = Scope(ids, choice.start_s, choice.end_s), library.query_vector(words)
    meaning = library.sentences.meaning(words)
    for hit in library.search.hybrid(words, vector, scope, k=choice.hits, meaning=meaning):
        score = hit.bm25 if hit.cosine is None else hit.cosine  # what both are fused into means nothing elsewhere
        yield Moment(library.video(hit.video_id), hit.time_s, hit.end_s, hit.text or words, score, hit.found_in)


def evidence(library: Library, records: Sequence[dict[str, Any]], name: str) -> list[Moment]:
    """Return the evidence of the answer that ends a trace, labelled with the question.

    Raises UsageError if there is none.
    """
    answer = records[-1].get("answer") if records[-1].get("event") == "Finished" else None
    if answer is None:
        raise UsageError(f"{name} has no answer yet: its run did not end; give the trace of one that did")
    question = records[0]["question"]["text"]
    found = [_evidence_moment(library, each, question, name) for each in answer["evidence"]]
    if not found:
        raise UsageError(f"the answer of {name} names no evidence; export moments of a search instead")
    return found


def _evidence_moment(library: Library, row: Any, question: str, name: str) -> Moment:
    try:
        video_id, start_s, end_s = str(row["video_id"]), float(row["start_s"]), float(row["end_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name} has evidence without video_id, start_s and end_s; record it again") from error
    if not 0 <= start_s <= end_s < math.inf:
        raise UsageError(f"{name} has evidence from {start_s:g} to {end_s:g} s, which is no range; record it again")
    return Moment(library.video(video_id), start_s, end_s, question, None, "evidence")
