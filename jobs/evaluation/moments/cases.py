"""Cases of a run: the searches of a benchmark whose videos a library holds, with their true moments by video id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from index.rows import VideoRow
from jobs.benchmarks.moments import MomentQuery, MomentSample
from jobs.benchmarks.samples import MissingVideo
from jobs.benchmarks.select_samples import match_names
from jobs.errors import UsageError
from jobs.evaluation.moments.intervals import Found
from jobs.evaluation.moments.pictures import Pictures

WORDS_ALONE = Pictures(alone="a picture without text")
SEVERAL = "several videos of the library have its video's name"


@dataclass(frozen=True, slots=True)
class Case:
    """A search with its truth. `query` and `video_id` are all that a system may see; None: the whole library.

    `relevant` names videos by id, or by the benchmark's name where the library lacks one: such a moment cannot be
    found, and counts as missed. `cluster` is the video by which errors are clustered.
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
    """The cases of a run, the videos that the library lacks, and the searches left out, by reason.

    Names in `ambiguous` are among the missing, because several videos of the library have them.
    """

    cases: tuple[Case, ...]
    missing: tuple[MissingVideo, ...]
    left_out: Mapping[str, int]
    ambiguous: Collection[str] = ()


def make_cases(
    samples: Sequence[MomentSample],
    videos: Sequence[VideoRow],
    limit: int | None = None,
    pictures: Pictures = WORDS_ALONE,
) -> Cases:
    """Match the samples with a library's videos; `limit` keeps the first so many that can be searched.

    Left out are searches whose moments are not published, whose `pictures` cannot be searched by, whose own video the
    library lacks, and all of whose moments are in videos that it lacks. Raises UsageError if nothing is left.
    """
    matches = match_names(Counter(name for sample in samples for name in sample.videos), videos, None)
    ids = {name: found[0] for name, found in matches.videos.items()}
    left_out: Counter[str] = Counter()
    cases = []
    for sample in samples:
        if reason := _left_out(sample, ids, matches.ambiguous, pictures):
            left_out[reason] += 1
        else:
            cases.append(_case(sample, ids))
    if not cases:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
        raise UsageError(f"none of {len(samples):,} searches can be scored ({reasons}); ingest their videos")
    return Cases(tuple(cases[:limit]), matches.missing, dict(left_out), matches.ambiguous)


def _left_out(
    sample: MomentSample, ids: Mapping[str, str], ambiguous: Collection[str], pictures: Pictures
) -> str | None:
    if not sample.known:
        return "moments not published"
    if sample.image and (reason := pictures.beside_words if sample.text else pictures.alone):
        return reason
    if sample.video is not None and sample.video not in ids:
        return SEVERAL if sample.video in ambiguous else "its video is not in the library"
    if sample.relevant and not any(video in ids for video, _, _ in sample.relevant):
        return "no video of its moments is in the library"
    return None


def _case(sample: MomentSample, ids: Mapping[str, str]) -> Case:
    relevant = tuple((ids.get(video, video), start_s, end_s) for video, start_s, end_s in sample.relevant)
    grades = sample.grades or (1.0,) * len(relevant)
    cluster = sample.video or (sample.relevant[0][0] if sample.relevant else f"none/{sample.sample_id}")
    video_id = None if sample.video is None else ids[sample.video]
    category = sample.category or ""
    return Case(sample.sample_id, sample.query, video_id, relevant, grades, sample.absent, category, cluster)
