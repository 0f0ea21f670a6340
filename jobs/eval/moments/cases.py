"""Cases: the searches whose videos a library holds, with their true moments by video id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import MomentQuery, SearchItem
from kinodex.jobs.eval.moments.query_pictures import Pictures
from kinodex.jobs.eval.video_names import MissingVideo, match_names

Found = tuple[str, float, float]
"""A moment that a contender found: the id of a video, and a half-open range in the seconds that a player shows."""

WORDS_ALONE = Pictures(alone="a picture without text")
SEVERAL = "several videos of the library have its video's name"


@dataclass(frozen=True, slots=True)
class Case:
    """A search with its truth. `query` and `video_id` are all that a contender may see; None: the whole library.

    `relevant` names videos by id, or by the benchmark's name where the library lacks one: such a moment counts as
    missed. `cluster` is the video by which errors are clustered.
    """

    case_id: str
    query: MomentQuery
    video_id: str | None
    relevant: tuple[Found, ...]
    grades: tuple[float, ...]
    absent: bool
    category: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a run, videos that the library lacks or cannot tell apart, and searches left out, by reason."""

    cases: tuple[Case, ...]
    missing: tuple[MissingVideo, ...]
    left_out: Mapping[str, int]
    ambiguous: Collection[str] = ()


def make_cases(
    samples: Sequence[SearchItem],
    videos: Sequence[VideoRow],
    limit: int | None = None,
    pictures: Pictures = WORDS_ALONE,
) -> Cases:
    """Match the items with a library's videos; at most `limit` of those that can be searched are kept.

    Raises UsageError if nothing is left.
    """
    matches = match_names(Counter(name for sample in samples for name in sample.videos), videos, None)
    ids = {name: found[0] for name, found in matches.videos.items()}
    reasons = [_left_out(sample, ids, matches.ambiguous, pictures) for sample in samples]
    cases = tuple(_case(sample, ids) for sample, reason in zip(samples, reasons, strict=True) if not reason)
    left_out = Counter(filter(None, reasons))
    if not cases:
        said = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
        raise UsageError(f"none of {len(samples):,} searches can be scored ({said}); ingest their videos")
    return Cases(cases[:limit], matches.missing, dict(left_out), matches.ambiguous)


def _left_out(sample: SearchItem, ids: Mapping[str, str], ambiguous: Collection[str], pictures: Pictures) -> str:
    if not sample.known:
        return "moments not published"
    if sample.image and (reason := pictures.beside_words if sample.text else pictures.alone):
        return reason
    if sample.video is not None and sample.video not in ids:
        return SEVERAL if sample.video in ambiguous else "its video is not in the library"
    if sample.relevant and not any(video in ids for video, _, _ in sample.relevant):
        return "no video of its moments is in the library"
    return ""


def _case(sample: SearchItem, ids: Mapping[str, str]) -> Case:
    relevant = tuple((ids.get(video, video), start_s, end_s) for video, start_s, end_s in sample.relevant)
    return Case(
        case_id=sample.item_id,
        query=sample.query,
        video_id=None if sample.video is None else ids[sample.video],
        relevant=relevant,
        grades=sample.grades or (1.0,) * len(relevant),
        absent=sample.absent,
        category=sample.category or "",
        cluster=sample.video or (sample.relevant[0][0] if sample.relevant else f"none/{sample.item_id}"),
    )
