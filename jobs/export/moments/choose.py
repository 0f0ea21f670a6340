"""Choose moments: from a file of ranges, a search, the evidence of an answer, one range, or rows of whole videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.trace.trace import read_trace
from index.library import Library
from index.rows import Hit, Scope, VideoRow
from jobs.errors import UsageError
from jobs.export.moments.moment import Moment
from jobs.export.moments.range_file import read_ranges
from jobs.export.moments.rows import ROWS
from jobs.open_library import load_text_tower


@dataclass(frozen=True, slots=True)
class MomentChoice:
    """Choice of moments. At most one of `ranges`, `search`, `trace` and `rows` is given; times are in seconds.

    `videos` and `[start_s, end_s)` limit all of them; alone with times they are one range a video.
    """

    ranges: Path | None = None
    search: str | None = None
    hits: int = 10
    trace: Path | None = None
    rows: str | None = None
    videos: tuple[str, ...] = ()
    start_s: float | None = None
    end_s: float | None = None
    label: str = ""
    pad_s: float = 0.0


def choose_moments(library: Library, choice: MomentChoice, usual_rows: str | None) -> list[Moment]:
    """Find the moments of a choice; without any, those of `usual_rows` of its videos.

    Hits come best first, ranges and evidence in their order, rows by video and time. Raises UsageError for a choice
    that makes no sense or finds nothing, and as the library does for unknown videos.
    """
    _check(choice, usual_rows)
    found = (moment.padded(choice.pad_s) for moment in _found(library, choice, usual_rows))
    limited = [cut for moment in found if (cut := moment.within(choice.start_s, choice.end_s))]
    if not limited:
        raise UsageError("nothing was found to export: no such moment lies in these videos and times")
    return limited


def _check(choice: MomentChoice, usual_rows: str | None) -> None:
    named = {"--ranges": choice.ranges, "--search": choice.search, "--trace": choice.trace, "--of": choice.rows}
    given = [name for name, value in named.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"got {' and '.join(given)}; give one of them")
    if choice.rows is not None and choice.rows not in ROWS:
        raise UsageError(f"got --of {choice.rows}; it is one of {', '.join(ROWS)}")
    if choice.start_s is not None and choice.end_s is not None and choice.start_s >= choice.end_s:
        raise UsageError(f"got --from {choice.start_s:g} and --to {choice.end_s:g}; give a --to after it")
    if choice.search is not None and not choice.search.strip():
        raise UsageError("got an empty --search; give some words to look for")
    if not given and not _is_range(choice) and usual_rows is None:
        raise UsageError(
            "got no moments; give --ranges FILE, --search WORDS, --trace FILE, --video NAME --from S --to S, or "
            f"--of {'|'.join(ROWS)}"
        )


def _is_range(choice: MomentChoice) -> bool:
    return bool(choice.videos) and (choice.start_s is not None or choice.end_s is not None)


def _found(library: Library, choice: MomentChoice, usual_rows: str | None) -> Iterator[Moment]:
    videos = library.videos_named(choice.videos) if choice.videos else None
    if choice.ranges is not None:
        yield from _among(read_ranges(choice.ranges, library), videos)
    elif choice.trace is not None:
        yield from _among(evidence(library, read_trace(choice.trace), str(choice.trace)), videos)
    elif choice.search is not None:
        yield from _search(library, choice, videos)
    elif choice.rows is None and videos is not None and _is_range(choice):
        yield from (Moment(each, each.start_s, each.end_s, choice.label) for each in videos)
    else:
        for video in library.videos() if videos is None else videos:
            yield from ROWS[choice.rows or usual_rows or "videos"](library, video)


def _among(moments: Sequence[Moment], videos: Sequence[VideoRow] | None) -> list[Moment]:
    ids = None if videos is None else {video.video_id for video in videos}
    return [moment for moment in moments if ids is None or moment.video.video_id in ids]


def _search(library: Library, choice: MomentChoice, videos: Sequence[VideoRow] | None) -> Iterator[Moment]:
    words = choice.search or ""
    ids = None if videos is None else tuple(video.video_id for video in videos)
    vector = load_text_tower(library, None).embed_text([words])[0]
    scope = Scope(ids, choice.start_s, choice.end_s)
    meaning = library.sentences.meaning(words)
    for hit in library.search.hybrid(words, vector, scope, k=choice.hits, meaning=meaning):
        yield _of_hit(library, hit, words)


def _of_hit(library: Library, hit: Hit, words: str) -> Moment:
    score = hit.bm25 if hit.cosine is None else hit.cosine  # what both are fused into means nothing elsewhere
    return Moment(library.video(hit.video_id), hit.time_s, hit.end_s, hit.text or words, score, hit.source)


def evidence(library: Library, records: Sequence[dict[str, Any]], name: str) -> list[Moment]:
    """The evidence of the answer that ends a trace, labelled with the question.

    Raises UsageError for a run that has no answer or no evidence, and UnknownVideo for a video of another library.
    """
    answer = records[-1].get("answer") if records[-1].get("event") == "Finished" else None
    if answer is None:
        raise UsageError(f"{name} has no answer yet: its run did not end; give the trace of one that did")
    question = records[0]["question"]["text"]
    found = [
        Moment(library.video(each["video_id"]), each["start_s"], each["end_s"], question, None, "evidence")
        for each in answer["evidence"]
    ]
    if not found:
        raise UsageError(f"the answer of {name} names no evidence; export moments of a search instead")
    return found
